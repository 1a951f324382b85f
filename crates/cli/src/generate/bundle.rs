//! `olmkit generate bundle`

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use olmkit::bundle::generate::job::{DOCKERFILE, package_and_layout};
use olmkit::bundle::generate::{self, Digests, Input, Job, Notice, Options, Target, Weight};
use olmkit::object::UntrustedText;
use olmkit::process::Launcher;

use crate::registry_flags::RegistryFlags;
use crate::{stdin, terminal};

/// Generate a bundle from manifests
///
/// Manifests come from standard input (`kustomize build config/manifests | olmkit generate bundle --version 0.0.1`), or
/// from one of --kustomize, --input-dir and --deploy-dir. Flags and files are those of operator-sdk 1.42.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples!["kustomize build config/manifests | olmkit generate bundle --version 0.1.0", "olmkit generate bundle --kustomize config/manifests --version 0.1.0 --channels stable", "olmkit generate bundle --input-dir deploy --version 0.1.0"])]
pub struct Args {
    /// Generate only manifests, unless --metadata is given too.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    manifests: Option<bool>,
    /// Generate only metadata and bundle.Dockerfile, unless --manifests is given too.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metadata: Option<bool>,
    /// Semantic version of the operator in this bundle. Without it, name and version of the base are kept.
    #[arg(short = 'v', long, value_name = "VERSION")]
    version: Option<String>,
    /// Read manifests from every file below a directory. Use --kustomize for a directory of kustomizations.
    #[arg(long, value_name = "DIR")]
    input_dir: Option<PathBuf>,
    /// Write the bundle to this directory.
    #[arg(
        long,
        value_name = "DIR",
        help = "Write the bundle to this directory [default: bundle]"
    )]
    output_dir: Option<PathBuf>,
    /// Read manifests from every file below a directory. CRDs too, unless --crds-dir is given.
    #[arg(long, value_name = "DIR")]
    deploy_dir: Option<PathBuf>,
    /// Read CRDs from the files of this directory. Needs --deploy-dir.
    #[arg(long, value_name = "DIR")]
    crds_dir: Option<PathBuf>,
    /// Build a kustomization with `kustomize` or `kubectl kustomize` and read the result.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["input_dir", "deploy_dir", "crds_dir"])]
    kustomize: Option<PathBuf>,
    /// Directory with the base CSV, bases/<package>.clusterserviceversion.yaml, used if the manifests contain no CSV.
    #[arg(long, value_name = "DIR", default_value = "config/manifests")]
    kustomize_dir: PathBuf,
    /// Channels of the bundle, comma-separated.
    #[arg(long, value_name = "LIST", default_value = "alpha")]
    channels: String,
    /// Default channel of the package.
    #[arg(long, value_name = "NAME", default_value = "")]
    default_channel: String,
    /// Further service accounts, besides those of the Deployments, whose permissions go into the CSV.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    extra_service_accounts: Vec<String>,
    /// Write metadata and bundle.Dockerfile even if the bundle has metadata.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    overwrite: bool,
    /// Write the Dockerfile to this path. Build the image from the current directory.
    #[arg(long, value_name = "FILE", default_value = DOCKERFILE)]
    dockerfile: PathBuf,
    /// Print the manifests instead of writing them.
    #[arg(long)]
    stdout: bool,
    /// Package name [default: that of the PROJECT file].
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Pin images to digests from their registries, or from --image-digests.
    #[arg(long)]
    use_image_digests: bool,
    /// A YAML or JSON file that maps images to digests (`sha256:…`) or to images with digests. Their registries are not
    /// queried. Implies --use-image-digests.
    #[arg(long, value_name = "FILE")]
    image_digests: Option<PathBuf>,
    /// Fail if anything would be lost. Merge and sort rules, keep what the base adds, remove certificate
    /// volumes that OLM replaces and stale files.
    #[arg(long)]
    strict: bool,
    /// Kinds, and fields such as Deployment.annotations, that --strict may drop from the bundle, comma-separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    allow_dropped: Vec<String>,
    /// Version or name of the CSV that this one replaces.
    #[arg(long, value_name = "VERSION", conflicts_with = "from_catalog")]
    replaces: Option<String>,
    /// Versions or names that this one skips, comma-separated.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    skips: Vec<String>,
    /// Range of versions that can upgrade to this one directly, such as `>=0.1.0 <0.2.0`.
    #[arg(long, value_name = "RANGE")]
    skip_range: Option<String>,
    /// A file-based catalog (directory or file). The head of the bundle's first channel there becomes `replaces`.
    #[arg(long, value_name = "PATH")]
    from_catalog: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let both = args.manifests.is_none() && args.metadata.is_none();
    let manifests = both || args.manifests == Some(true);
    let metadata = both || args.metadata == Some(true);
    let (package, layout) = package_and_layout(
        Path::new("."),
        args.package.as_deref(),
        args.strict,
        &args.kustomize_dir,
    )?;
    if manifests {
        args.check_manifest_flags()?;
    }
    let target = args.target();
    let directory = target.directory.display().to_string();
    let mut job = Job::new(args.options(&package, layout, manifests)?, target);
    if manifests {
        args.say("Generating bundle manifests");
        args.make_manifests(&mut job, &package)?;
    }
    if metadata {
        args.say("Generating bundle metadata");
        job.metadata()?;
        job.dockerfile_notice().iter().for_each(print);
    }
    let written = job.write()?;
    if let Some(stream) = written.stream {
        terminal::document().write_all(stream.as_bytes())?;
    }
    for removed in written.removed {
        eprintln!(
            "removed {}: it is no longer in the input",
            UntrustedText::new(&removed.to_string_lossy())
        );
    }
    args.say(&format!("Bundle written to {directory}"));
    Ok(ExitCode::SUCCESS)
}

/// Prints a notice about the generated bundle.
fn print(notice: &Notice) {
    if notice.weight == Weight::Note {
        note!("{notice}");
    } else {
        eprintln!("{notice}");
    }
}

impl Args {
    fn say(&self, text: &str) {
        if !self.stdout {
            note!("{text}");
        }
    }

    fn check_manifest_flags(&self) -> anyhow::Result<()> {
        if let Some(version) = &self.version {
            generate::check_version(version).context("--version")?;
        }
        if self.stdout && self.output_dir.is_some() {
            bail!("--output-dir cannot be used with --stdout");
        }
        Ok(())
    }

    fn target(&self) -> Target {
        Target {
            directory: self
                .output_dir
                .clone()
                .filter(|path| !path.as_os_str().is_empty())
                .unwrap_or_else(|| "bundle".into()),
            input: self.input_dir.clone(),
            channels: self.channels.clone(),
            default_channel: self.default_channel.clone(),
            overwrite: self.overwrite,
            stream: self.stdout,
            dockerfile: self.dockerfile.clone(),
        }
    }

    fn options(&self, package: &str, layout: String, manifests: bool) -> anyhow::Result<Options> {
        let replaces = match self.from_catalog.as_ref().filter(|_| manifests) {
            Some(catalog) => {
                let channel = self.channels.split(',').next().unwrap_or("alpha");
                Some(olmkit::catalog::head::read(catalog, package, channel)?)
            }
            None => self.replaces.clone(),
        };
        Ok(Options {
            package: package.to_owned(),
            layout,
            version: self.version.clone().filter(|version| !version.is_empty()),
            extra_service_accounts: self.extra_service_accounts.clone(),
            replaces,
            skips: self.skips.clone(),
            skip_range: self.skip_range.clone(),
            strict: self.strict,
            allow_dropped: self.allow_dropped.clone(),
            created_at: String::new(),
        })
    }

    fn make_manifests(&self, job: &mut Job, package: &str) -> anyhow::Result<()> {
        let input = self.input(package)?;
        let client;
        let mut look_up;
        let digests = if self.use_image_digests || self.image_digests.is_some() {
            client = self.registry.client()?;
            look_up = |image: &str| super::digests::look_up(&client, image);
            let known = self
                .image_digests
                .as_deref()
                .map(generate::read_digest_map)
                .transpose()?;
            Some(Digests {
                known: known.unwrap_or_default(),
                look_up: &mut look_up,
            })
        } else {
            None
        };
        let generated = job.manifests(&input, digests).inspect_err(|failure| {
            failure.notices.iter().for_each(print);
        })?;
        generated.notices.iter().for_each(print);
        super::check::csv(generated, package)
    }

    fn input(&self, package: &str) -> anyhow::Result<Input> {
        let directories = self.input_dir.is_some() || self.deploy_dir.is_some() || self.crds_dir.is_some();
        let given = directories || self.kustomize.is_some();
        if self.input_dir.is_some() && (self.deploy_dir.is_some() || self.crds_dir.is_some()) {
            bail!("use one of --input-dir and --deploy-dir (with --crds-dir)");
        }
        if given && stdin::has_data() {
            bail!("cannot read manifests from both standard input and a directory; use one of them");
        }
        if !given && !stdin::is_redirected() {
            bail!(
                "no input: pipe manifests in, as in `kustomize build config/manifests | \
                 olmkit generate bundle`, or pass a directory with --kustomize or --input-dir"
            );
        }
        let mut input = match (&self.input_dir, &self.deploy_dir, &self.crds_dir, &self.kustomize) {
            (Some(directory), ..) | (None, Some(directory), None, None) => Input::from_directory(directory)?,
            (None, Some(deploy), Some(crds), _) => Input::from_directories(deploy, crds)?,
            (None, None, Some(_), _) => bail!("--crds-dir needs --deploy-dir"),
            (.., Some(directory)) => {
                Input::from_kustomization(&super::build::kustomize(&Launcher::default(), directory)?, directory)?
            }
            (None, None, None, None) => Input::from_reader(std::io::stdin().lock())?,
        };
        input.read_base(&self.kustomize_dir, package)?;
        Ok(input)
    }
}
