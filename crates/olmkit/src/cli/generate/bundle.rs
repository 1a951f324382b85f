//! `olmkit generate bundle`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use olmkit::bundle::generate::{self, Generated, Input, Metadata, Options, ProjectFile, Weight};
use olmkit::bundle::write::{self, Stale};

use crate::cli::registry_flags::RegistryFlags;
use crate::cli::{created_at, stdin};

/// Makes a bundle: a ClusterServiceVersion with everything OLM needs to run the operator, the CRDs, what else belongs
/// into the cluster, metadata, and a bundle.Dockerfile.
///
/// Manifests come from standard input (`kustomize build config/manifests | olmkit generate bundle --version 0.0.1`), or
/// from one of --input-dir, --deploy-dir and --kustomize. Flags and files are those of operator-sdk 1.42.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Args {
    /// Make manifests only, unless --metadata is given too.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    manifests: Option<bool>,
    /// Make metadata and bundle.Dockerfile only, unless --manifests is given too.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metadata: Option<bool>,
    /// Semantic version of the operator in this bundle. Without it, name and version of the base stay.
    #[arg(short = 'v', long, value_name = "VERSION")]
    version: Option<String>,
    /// Read manifests from every file below a directory.
    #[arg(long, value_name = "DIR")]
    input_dir: Option<PathBuf>,
    /// Write the bundle to this directory.
    #[arg(
        long,
        value_name = "DIR",
        help = "Write the bundle to this directory [default: bundle]"
    )]
    output_dir: Option<PathBuf>,
    /// Read manifests from every file below a directory; CRDs too, unless --crds-dir is given.
    #[arg(long, value_name = "DIR")]
    deploy_dir: Option<PathBuf>,
    /// Read CRDs from the files of this directory; needs --deploy-dir.
    #[arg(long, value_name = "DIR")]
    crds_dir: Option<PathBuf>,
    /// Build a kustomization with `kustomize` or `kubectl kustomize` and read the result.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["input_dir", "deploy_dir", "crds_dir"])]
    kustomize: Option<PathBuf>,
    /// Directory with the base CSV, bases/<package>.clusterserviceversion.yaml, used when the manifests hold no CSV.
    #[arg(long, value_name = "DIR", default_value = "config/manifests")]
    kustomize_dir: PathBuf,
    /// Channels the bundle belongs to, joined with commas.
    #[arg(long, value_name = "LIST", default_value = "alpha")]
    channels: String,
    /// Default channel of the package.
    #[arg(long, value_name = "NAME", default_value = "")]
    default_channel: String,
    /// Service accounts beside those of the Deployments whose permissions belong into the CSV.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    extra_service_accounts: Vec<String>,
    /// Write metadata and bundle.Dockerfile even if the bundle has metadata.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    overwrite: bool,
    /// Say nothing but warnings and errors.
    #[arg(short, long)]
    quiet: bool,
    /// Print the manifests instead of writing them.
    #[arg(long)]
    stdout: bool,
    /// Package name; taken from the PROJECT file otherwise.
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Replace images by their digests, asked from their registries or taken from --image-digests.
    #[arg(long)]
    use_image_digests: bool,
    /// A YAML or JSON file that maps images to digests (`sha256:…`) or to images with digests; no registry is asked for
    /// them. Turns --use-image-digests on.
    #[arg(long, value_name = "FILE")]
    image_digests: Option<PathBuf>,
    /// Make everything that would be lost an error; merge and sort rules, keep what the base adds, remove certificate
    /// volumes that OLM replaces and stale files.
    #[arg(long)]
    strict: bool,
    /// Kinds that --strict may leave out of the bundle, joined with commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    allow_dropped: Vec<String>,
    /// Version or name of the CSV that this one follows.
    #[arg(long, value_name = "VERSION", conflicts_with = "from_catalog")]
    replaces: Option<String>,
    /// Versions or names that this one skips, joined with commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    skips: Vec<String>,
    /// Range of versions that this one may follow directly, for example `>=0.1.0 <0.2.0`.
    #[arg(long, value_name = "RANGE")]
    skip_range: Option<String>,
    /// A file-based catalog (directory or file); the head of the bundle's first channel there becomes `replaces`.
    #[arg(long, value_name = "PATH")]
    from_catalog: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let both = args.manifests.is_none() && args.metadata.is_none();
    let (manifests, metadata) = (
        both || args.manifests == Some(true),
        both || args.metadata == Some(true),
    );
    let project = ProjectFile::read(Path::new("."))?;
    let (package, layout) = package_and_layout(args, project)?;
    let mut job = Job {
        args,
        package,
        layout,
        files: BTreeMap::new(),
        generated: None,
        stale: Stale::Keep,
    };
    if manifests {
        job.manifests()?;
    }
    if metadata {
        job.metadata()?;
    }
    job.write()?;
    Ok(ExitCode::SUCCESS)
}

fn package_and_layout(args: &Args, project: Option<ProjectFile>) -> anyhow::Result<(String, String)> {
    let layout = project
        .as_ref()
        .map_or_else(|| "unknown".to_owned(), |project| project.layout.clone());
    match args
        .package
        .clone()
        .filter(|package| !package.is_empty())
        .or(project.map(|project| project.name))
    {
        Some(package) if !package.is_empty() => Ok((package, layout)),
        Some(_) => bail!("the PROJECT file has no projectName; name the package with --package"),
        None if args.strict => Ok((only_base(&args.kustomize_dir)?, layout)),
        None => bail!("there is no PROJECT file here; name the package with --package"),
    }
}

/// The package that the only base CSV of a project is for.
fn only_base(kustomize_dir: &Path) -> anyhow::Result<String> {
    let bases = kustomize_dir.join("bases");
    let names: Vec<String> = std::fs::read_dir(&bases)
        .map(|entries| {
            entries
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .filter_map(|name| Some(name.strip_suffix(".clusterserviceversion.yaml")?.to_owned()))
                .collect()
        })
        .unwrap_or_default();
    match names.as_slice() {
        [name] => Ok(name.clone()),
        _ => bail!(
            "there is no PROJECT file here, and {} holds {} base CSVs; name the package with --package",
            bases.display(),
            names.len()
        ),
    }
}

/// What is made, before anything is written.
struct Job<'a> {
    args: &'a Args,
    package: String,
    layout: String,
    /// Files by path relative to the output directory.
    files: BTreeMap<PathBuf, Vec<u8>>,
    generated: Option<Generated>,
    stale: Stale,
}

impl Job<'_> {
    fn say(&self, text: &str) {
        if !self.args.quiet && !self.args.stdout {
            eprintln!("{text}");
        }
    }

    fn output(&self) -> PathBuf {
        self.args
            .output_dir
            .clone()
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or_else(|| "bundle".into())
    }

    fn manifests(&mut self) -> anyhow::Result<()> {
        if let Some(version) = &self.args.version {
            generate::check_version(version).context("--version")?;
        }
        if self.args.stdout && self.args.output_dir.is_some() {
            bail!("--output-dir cannot be set when the manifests are printed (--stdout)");
        }
        self.say("Generating bundle manifests");
        let input = self.input()?;
        let mut options = Options {
            package: self.package.clone(),
            layout: self.layout.clone(),
            version: self.args.version.clone().filter(|version| !version.is_empty()),
            extra_service_accounts: self.args.extra_service_accounts.clone(),
            replaces: self.replaces()?,
            skips: self.args.skips.clone(),
            skip_range: self.args.skip_range.clone(),
            strict: self.args.strict,
            allow_dropped: self.args.allow_dropped.clone(),
            created_at: String::new(),
        };
        // The time stays while everything else does.
        let present = self.present_created_at();
        options.created_at = present.clone().unwrap_or(created_at::now()?);
        let mut generated = self.generate(input.clone(), &options)?;
        if present.is_some() && !self.is_on_disk(&generated)? {
            options.created_at = created_at::now()?;
            generated = self.generate(input, &options)?;
        }
        for notice in generated
            .notices
            .iter()
            .filter(|notice| !self.args.quiet || notice.weight != Weight::Note)
        {
            eprintln!("{notice}");
        }
        super::check::csv(&generated, &self.package)?;
        if !self.args.stdout {
            self.files.extend(generated.files()?);
        }
        if self.args.strict {
            self.stale = Stale::Remove;
        }
        self.generated = Some(generated);
        Ok(())
    }

    fn generate(&self, input: Input, options: &Options) -> anyhow::Result<Generated> {
        let mut generated = generate::generate(input, options).map_err(|(error, notices)| {
            for notice in notices {
                eprintln!("{notice}");
            }
            anyhow::Error::from(error).context("no bundle was made")
        })?;
        if self.args.use_image_digests || self.args.image_digests.is_some() {
            super::digests::pin(&mut generated, self.args.image_digests.as_deref(), &self.args.registry)?;
        }
        Ok(generated)
    }

    fn input(&self) -> anyhow::Result<Input> {
        let args = self.args;
        let directories = args.input_dir.is_some() || args.deploy_dir.is_some() || args.crds_dir.is_some();
        let given = directories || args.kustomize.is_some();
        if args.input_dir.is_some() && (args.deploy_dir.is_some() || args.crds_dir.is_some()) {
            bail!("use one of --input-dir and --deploy-dir (with --crds-dir)");
        }
        if given && stdin::has_data() {
            bail!("manifests are piped in, and a directory is named too; use one of them");
        }
        if !given && !stdin::is_redirected() {
            bail!(
                "there is nothing to make a bundle of: pipe manifests in, as in `kustomize build config/manifests | \
                 olmkit generate bundle`, or name a directory with --input-dir"
            );
        }
        let mut input = match (&args.input_dir, &args.deploy_dir, &args.crds_dir, &args.kustomize) {
            (Some(directory), ..) | (None, Some(directory), None, None) => Input::from_directory(directory)?,
            (None, Some(deploy), Some(crds), _) => Input::from_directories(deploy, crds)?,
            (None, None, Some(_), _) => bail!("--crds-dir needs --deploy-dir"),
            (.., Some(directory)) => Input::from_reader(super::build::kustomize(directory)?.as_slice())?,
            (None, None, None, None) => Input::from_reader(std::io::stdin().lock())?,
        };
        input.read_base(&args.kustomize_dir, &self.package)?;
        Ok(input)
    }

    fn replaces(&self) -> anyhow::Result<Option<String>> {
        match &self.args.from_catalog {
            Some(catalog) => {
                let channel = self.args.channels.split(',').next().unwrap_or("alpha");
                super::catalog::head(catalog, &self.package, channel).map(Some)
            }
            None => Ok(self.args.replaces.clone()),
        }
    }

    fn csv_path(&self) -> PathBuf {
        PathBuf::from("manifests").join(format!("{}.clusterserviceversion.yaml", self.package.to_lowercase()))
    }

    fn present_created_at(&self) -> Option<String> {
        let bytes = std::fs::read(self.output().join(self.csv_path())).ok()?;
        let csv = olmkit::yaml::parse(&bytes).ok()?;
        csv.pointer("/metadata/annotations")?
            .get("createdAt")?
            .as_str()
            .map(str::to_owned)
    }

    fn is_on_disk(&self, generated: &Generated) -> anyhow::Result<bool> {
        let output = self.output();
        Ok(generated
            .files()?
            .iter()
            .all(|(path, bytes)| std::fs::read(output.join(path)).is_ok_and(|present| present == *bytes)))
    }

    fn metadata(&mut self) -> anyhow::Result<()> {
        self.say("Generating bundle metadata");
        let output = self.output();
        // With --input-dir operator-sdk looks for metadata and scorecard configuration below the input.
        let root = match (&self.args.input_dir, self.args.strict) {
            (Some(input), false) => input.clone(),
            _ => output.clone(),
        };
        let present = super::metadata::find(&root)?;
        if present.is_some() && !self.args.overwrite {
            return Ok(());
        }
        let scorecard = Path::new("tests/scorecard/config.yaml");
        let made = self.files.contains_key(scorecard) && root == output;
        let kept = root.join(scorecard).exists() && (self.stale == Stale::Keep || self.generated.is_none());
        let metadata = Metadata {
            directory: output.display().to_string(),
            package: self.package.clone(),
            channels: self.args.channels.clone(),
            default_channel: self.args.default_channel.clone(),
            builder: if self.args.strict {
                generate::builder()
            } else {
                generate::OPERATOR_SDK_BUILDER.to_owned()
            },
            layout: Some(self.layout.clone())
                .filter(|layout| !self.args.strict || layout != "unknown")
                .unwrap_or_default(),
            scorecard: made || kept,
            own: if self.args.strict {
                super::metadata::own(present)
            } else {
                Vec::new()
            },
        };
        self.files.insert(
            PathBuf::from("metadata/annotations.yaml"),
            metadata.annotations().into_bytes(),
        );
        self.files
            .insert(PathBuf::from(DOCKERFILE), metadata.dockerfile().into_bytes());
        Ok(())
    }

    fn write(mut self) -> anyhow::Result<()> {
        let dockerfile = self.files.remove(Path::new(DOCKERFILE));
        if let Some(generated) = self.generated.as_ref().filter(|_| self.args.stdout) {
            print!("{}", generated.stream()?);
            if let Some(scorecard) = &generated.scorecard {
                let text = olmkit::yaml::to_string(scorecard)?;
                write::file(Path::new("tests/scorecard/config.yaml"), text.as_bytes())?;
            }
        }
        if !self.files.is_empty() {
            for stale in write::replace(&self.output(), &self.files, self.stale)? {
                eprintln!(
                    "removed {}: the input no longer has it",
                    self.output().join(stale).display()
                );
            }
        }
        if let Some(dockerfile) = dockerfile {
            write::file(Path::new(DOCKERFILE), &dockerfile)?;
        }
        self.say(&format!("Bundle written to {}", self.output().display()));
        Ok(())
    }
}

const DOCKERFILE: &str = "bundle.Dockerfile";
