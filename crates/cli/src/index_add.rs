//! `opm index add`: the command of operator-sdk's Makefile, which built SQLite catalogs. It builds a file-based catalog
//! instead, and reports this.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::catalog::accumulate::{self, Channels, Mode};
use olmkit::catalog::render::bundle::Source;
use olmkit::catalog::render::reference::{CONFIGS_LABEL, Images as _, Options, render};
use olmkit::catalog::render::{MigrateLevel, migrate};
use olmkit::catalog::{Catalog, init, order, validate, write};
use olmkit::process::{Environment, Launcher, Run};
use olmkit_oci::build::{bundle_labels, catalog_recipe, source_date_epoch, with_index};
use olmkit_oci::spec::Platform;
use olmkit_oci::store::Store;
use olmkit_oci::{Location, Reference, deliver};
use olmkit_serve::source;

use super::catalog::images::RegistryImages;
use super::image::build::helper_binary;
use super::registry_flags::RegistryFlags;
use crate::runtime::block_on;
use crate::terminal;

#[derive(clap::Args)]
pub struct Args {
    /// Bundle images (or bundle directories) to add.
    #[arg(short, long, required = true, value_delimiter = ',', value_name = "IMAGE")]
    bundles: Vec<String>,
    /// Catalog to add them to [default: a new one].
    #[arg(short, long, default_value = "", value_name = "IMAGE")]
    from_index: String,
    /// Name of the new catalog image.
    #[arg(
        short,
        long,
        default_value = "operator-registry-index:latest",
        value_name = "REFERENCE"
    )]
    tag: Reference,
    /// Load the image into docker, podman or buildah. With none, it remains in olmkit's image store [default: none]
    #[arg(short, long, value_name = "TOOL", conflicts_with_all = ["build_tool", "pull_tool"])]
    container_tool: Option<String>,
    /// The same as --container-tool
    #[arg(short = 'u', long, value_name = "TOOL")]
    build_tool: Option<String>,
    /// How upgrade edges are computed: replaces, semver or semver-skippatch.
    #[arg(long, default_value = "replaces")]
    mode: Mode,
    /// Write the catalog (index/) and its Dockerfile, without an image.
    #[arg(long)]
    generate: bool,
    /// File for the Dockerfile of --generate.
    #[arg(short = 'd', long, default_value = "index.Dockerfile", value_name = "FILE")]
    out_dockerfile: PathBuf,
    /// The static olmkit binary that serves the catalog [default: olmkit-helper in the directory of olmkit, else
    /// olmkit].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Replace a bundle that the catalog has already, if it is the head of its channels.
    #[arg(long, hide = true)]
    overwrite_latest: bool,
    /// Ignored (opm compatibility): the new image has olmkit as its server.
    #[arg(short = 'i', long, hide = true, value_name = "IMAGE")]
    binary_image: Option<String>,
    /// Ignored (opm compatibility): no tool is needed to pull.
    #[arg(short = 'p', long, hide = true, value_name = "TOOL")]
    pull_tool: Option<String>,
    /// Ignored (opm compatibility): problems of a catalog are always reported.
    #[arg(long, hide = true)]
    permissive: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let catalog = accumulated(args)?;
    if let Some(problem) = validate::opm_text(&catalog) {
        anyhow::bail!("the catalog would not be valid: {problem}");
    }
    if args.generate {
        return generate(args, catalog);
    }
    let directory = olmkit::temporary::Directory::new("index")?;
    write::directory(order::blobs(catalog), write::Format::Yaml, directory.path())?;
    build(args, directory.path())?;
    note!(
        "built {} as a file-based catalog (label {CONFIGS_LABEL}); SQLite catalogs are deprecated, and OLM reads both",
        args.tag
    );
    Ok(ExitCode::SUCCESS)
}

/// The catalog to begin with, and the bundles on top.
fn accumulated(args: &Args) -> anyhow::Result<Catalog> {
    let images = RegistryImages::new(&args.registry);
    let mut catalog = match args.from_index.as_str() {
        "" => Catalog::default(),
        index => render(&[index.to_owned()], &Options::default(), &images)?,
    };
    for reference in &args.bundles {
        let directory = Path::new(reference);
        let (bundle, labels) = if directory.is_dir() {
            let source = Source::read(directory).with_context(|| reference.clone())?;
            (source.render("")?, bundle_labels(directory)?)
        } else {
            let image = images.unpack(reference).map_err(anyhow::Error::msg)?;
            let source =
                Source::read(image.directory.path()).with_context(|| format!("{reference} is not a bundle image"))?;
            (source.render(reference)?, image.labels)
        };
        let channels = Channels::from_labels(&labels);
        accumulate::add(&mut catalog, bundle, &channels, args.mode, args.overwrite_latest)
            .with_context(|| format!("cannot add {reference}"))?;
    }
    // Consoles need no more than the extract, and OLM pulls the image.
    for bundle in &mut catalog.bundles {
        migrate(bundle, MigrateLevel::BundleObjectToCsvMetadata)?;
    }
    Ok(catalog)
}

fn generate(args: &Args, catalog: Catalog) -> anyhow::Result<ExitCode> {
    write::directory(order::blobs(catalog), write::Format::Yaml, Path::new("index"))?;
    let dockerfile = init::Dockerfile {
        directory: "index",
        base_image: "quay.io/operator-framework/opm:latest",
        builder_image: "quay.io/operator-framework/opm:latest",
        labels: std::collections::BTreeMap::new(),
    };
    std::fs::write(&args.out_dockerfile, dockerfile.to_string())
        .with_context(|| format!("cannot write {}", args.out_dockerfile.display()))?;
    note!(
        "wrote a file-based catalog to index/ and its Dockerfile to {}",
        args.out_dockerfile.display()
    );
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// The tool that gets the image, if any.
    fn tool(&self) -> Option<&str> {
        let tool = self.build_tool.as_deref().or(self.container_tool.as_deref());
        tool.filter(|tool| !matches!(*tool, "" | "none"))
    }
}

/// Builds the image under the name that `make catalog-push` uses.
fn build(args: &Args, directory: &Path) -> anyhow::Result<()> {
    let time = source_date_epoch(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref())?;
    let program = helper_binary(args.binary.as_ref(), &Platform::host())?;
    let recipe = catalog_recipe(directory, &program, Platform::host(), time)?;
    let recipe = with_index(recipe, source::INDEX_FILE, source::bytes(directory)?)?;
    let store = Store::write(&Store::default_path()?)?;
    let image = recipe.build(store.layout())?;
    let name = args.tag.with_default_tag().to_string();
    let Some(tool) = args.tool() else {
        crate::image::warn_of_damage(&store.set(&args.tag, &image)?);
        println!("{}", args.tag.pinned(image.digest));
        return Ok(());
    };
    let folder = olmkit::temporary::Directory::new("archive")?;
    let archive = folder.path().join("catalog.tar");
    let place = Location::DockerArchive(archive.clone(), None);
    let client = args.registry.client()?;
    block_on(deliver(&client, store.layout(), &image, &place, &name, &[]))??;
    crate::image::warn_of_damage(&store.layout().prune()?);
    load(&Launcher::default(), tool, &archive, &name)
}

/// Loads an archive with a container tool. The tool inherits the environment, which names its daemon and storage.
fn load(launcher: &Launcher, tool: &str, archive: &Path, name: &str) -> anyhow::Result<()> {
    // buildah has no `load`, but pulls from archives.
    let arguments: Vec<OsString> = if Path::new(tool).file_name() == Some(OsStr::new("buildah")) {
        let mut place = OsString::from("docker-archive:");
        place.push(archive);
        vec!["pull".into(), place]
    } else {
        vec!["load".into(), "--input".into(), archive.into()]
    };
    let run = Run {
        prompts: true,
        shows_errors: true,
        ..Run::new(OsStr::new(tool), Environment::Except(&["GIT_*"])).arguments(arguments)
    };
    let ended = launcher.run(run).with_context(|| {
        format!(
            "cannot run {tool}; pass --container-tool none to keep the image in olmkit's own store, and push it with `olmkit image push {name}`"
        )
    })?;
    terminal::output().write_all(&ended.output)?;
    anyhow::ensure!(
        ended.status.success(),
        "{tool} failed to load the image: {}",
        ended.status
    );
    Ok(())
}
