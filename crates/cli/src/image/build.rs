//! `olmkit image build`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use olmkit_oci::build::{
    Base, Recipe, build_index, bundle_recipe, catalog_recipe, check_program, directory_recipe, helper_recipe,
    operator_on_base_recipe, operator_recipe, path_for, program_for, program_on_base, source_date_epoch, with_index,
};
use olmkit_oci::layer::LayerBuilder;
use olmkit_oci::registry::{Client, Platforms};
use olmkit_oci::spec::{Descriptor, Platform};
use olmkit_oci::store::Store;
use olmkit_oci::{Fetched, Layout, Location, deliver, fetch};
use olmkit_serve::source;

use super::build_flags::{BuildFlags, key_value};
use super::output::Output;
use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

/// Where Linux distributions keep their certificate authorities.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
#[command(defer = true)]
enum Kind {
    /// Build a bundle image
    ///
    /// Use it to publish a bundle. Labels come from metadata/annotations.yaml. The same directory gives the same digest
    /// on every machine.
    #[command(after_help = examples!["olmkit image build bundle bundle --tag quay.io/example/cache-operator-bundle:v1"])]
    Bundle {
        /// The bundle directory
        #[arg(default_value = "bundle")]
        directory: PathBuf,
        #[command(flatten)]
        flags: BuildFlags,
    },
    /// Build a catalog image
    ///
    /// Use it to publish a catalog for OLM. The image contains the catalog and a server for port 50051. Fails if a
    /// package is invalid.
    #[command(after_help = examples!["olmkit image build catalog catalog --tag quay.io/example/catalog:v1 --output push"])]
    Catalog {
        /// The catalog directory
        #[arg(default_value = "catalog")]
        directory: PathBuf,
        /// The static binary that serves the catalog. {os} and {arch} are replaced by the platform [default:
        /// olmkit-helper in the directory of olmkit, else olmkit]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        #[command(flatten)]
        flags: BuildFlags,
    },
    /// Build an operator image from a static binary
    ///
    /// Use it for an operator in Rust or Go. The image contains the binary, /etc/passwd and certificate authorities,
    /// and runs as user 65532.
    #[command(after_help = examples!["olmkit image build operator target/release/cache-operator --tag quay.io/example/cache-operator:v1"])]
    Operator {
        /// The static binary. {os} and {arch} are replaced by the platform
        binary: PathBuf,
        /// File with certificate authorities (PEM) to add [default: /etc/ssl/certs/ca-certificates.crt, or none with --base]
        #[arg(long, value_name = "FILE")]
        authorities: Option<PathBuf>,
        /// Omit certificate authorities
        #[arg(long, conflicts_with = "authorities")]
        no_authorities: bool,
        /// Base image: any source that `olmkit image copy` accepts
        #[arg(long, value_name = "IMAGE")]
        base: Option<Location>,
        #[command(flatten)]
        flags: BuildFlags,
    },
    /// Build an image from a root file system directory
    ///
    /// Use it if a build has already put all files of your program into a directory.
    #[command(after_help = examples!["olmkit image build directory rootfs --entrypoint /app --tag quay.io/example/app:v1"])]
    Directory {
        /// Directory to use as the root file system
        directory: PathBuf,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        flags: BuildFlags,
    },
    /// Build an image from files, optionally on a base image
    ///
    /// Use it for a program with more than one file, or to add files to an existing image.
    #[command(after_help = examples!["olmkit image build files --add bin/app:/app --entrypoint /app --tag quay.io/example/app:v1", "olmkit image build files --base store:base:v1 --add bin/app:/app --tag quay.io/example/app:v1"])]
    Files {
        /// File or directory to add and its path in the image; {os} and {arch} expand to the platform; repeatable
        #[arg(long, value_name = "SOURCE:TARGET", required = true)]
        add: Vec<String>,
        /// Base image: any source that `olmkit image copy` accepts
        #[arg(long, value_name = "IMAGE")]
        base: Option<Location>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        flags: BuildFlags,
    },
    /// Build the helper image for OLM's catalog and unpack pods
    ///
    /// Use it if nodes cannot pull the upstream images, or to make these pods smaller. One static binary replaces opm,
    /// cp, cpb, copy-content and grpc_health_probe.
    #[command(after_help = examples!["olmkit image build helper --tag quay.io/example/olmkit-helper:v1"])]
    Helper {
        /// The static binary. {os} and {arch} are replaced by the platform [default: olmkit-helper in the directory of
        /// olmkit, else olmkit]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        #[command(flatten)]
        flags: BuildFlags,
    },
}

// Runtime settings of an image. No doc comment, as for `RegistryFlags`.
#[derive(clap::Args)]
struct Settings {
    /// User that runs the process [default: 65532:65532, or the base image's user]
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Working directory of the process
    #[arg(long, value_name = "DIRECTORY")]
    workdir: Option<String>,
    /// Environment variable. Repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_value)]
    env: Vec<(String, String)>,
    /// Entrypoint. Repeat the flag for fixed arguments
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    entrypoint: Vec<String>,
    /// Default argument. Repeatable
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    cmd: Vec<String>,
}

impl Settings {
    fn apply(&self, recipe: &mut Recipe) {
        let config = &mut recipe.config;
        let default_user = if recipe.base.is_some() { "" } else { "65532:65532" };
        config.user = self.user.clone().unwrap_or_else(|| default_user.to_owned());
        config.working_dir = self.workdir.clone().unwrap_or_default();
        config.env = self.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        config.entrypoint.clone_from(&self.entrypoint);
        config.cmd.clone_from(&self.cmd);
    }
}

pub fn run(args: &Args, registry: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let flags = args.kind.flags();
    one_platform_in_docker_archives(flags)?;
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let time = source_date_epoch(epoch.as_deref())?;
    let client = registry.client()?;
    let store = Store::write(&Store::default_path()?)?;
    let layout = store.layout();
    let mut built = Vec::new();
    for platform in &flags.platforms() {
        let base = match args.kind.base() {
            Some(base @ Location::Store(reference)) => Some((base, Fetched::stored(&store, reference)?)),
            // The images for other platforms are not needed, and may be missing.
            Some(base) => Some((
                base,
                block_on(fetch(&client, base, &Platforms::One(platform.clone())))??,
            )),
            None => None,
        };
        let base = base.as_ref().map(|(name, fetched)| on_base(name, fetched, platform));
        let mut recipe = args.kind.recipe(base.transpose()?, platform, time)?;
        flags.apply(&mut recipe)?;
        built.push(recipe.build(layout)?);
    }
    let image = match built.as_slice() {
        [only] => only.clone(),
        _ => build_index(
            layout,
            flags.media_types(),
            built,
            flags.annotations(time)?.into_iter().collect(),
        )?,
    };
    let digest = image.digest.clone();
    put(&client, &store, layout, &image, flags)?;
    println!("{}", flags.tag.pinned(digest));
    Ok(ExitCode::SUCCESS)
}

/// Docker archives have no index, so only one platform fits.
fn one_platform_in_docker_archives(flags: &BuildFlags) -> anyhow::Result<()> {
    let docker = |output: &Output| matches!(output, Output::Place(Location::DockerArchive(..)));
    anyhow::ensure!(
        flags.platforms().len() < 2 || !flags.output.iter().any(docker),
        "a Docker archive contains the image of one platform; write oci-archive:FILE, or build one --platform at a time"
    );
    Ok(())
}

/// Writes the image to every destination of `--output`.
fn put(client: &Client, store: &Store, layout: &Layout, image: &Descriptor, flags: &BuildFlags) -> anyhow::Result<()> {
    let name = flags.tag.with_default_tag().to_string();
    for output in &flags.output {
        match output {
            Output::Store => super::warn_of_damage(&store.set(&flags.tag, image)?),
            Output::Push => {
                let target = Location::Registry(flags.tag.clone());
                let related = store.references()?;
                block_on(deliver(client, layout, image, &target, &name, &related))??;
            }
            Output::Place(place) => block_on(deliver(client, layout, image, place, &name, &[]))??,
        }
    }
    // After the image was loaded into another tool, the store need not keep it.
    super::warn_of_damage(&layout.prune()?);
    Ok(())
}

fn on_base(name: &Location, fetched: &Fetched, platform: &Platform) -> anyhow::Result<Base> {
    Ok(Base {
        layout: fetched.layout.clone(),
        image: fetched.image(platform)?,
        name: name.to_string(),
    })
}

impl Kind {
    fn flags(&self) -> &BuildFlags {
        match self {
            Self::Bundle { flags, .. }
            | Self::Catalog { flags, .. }
            | Self::Directory { flags, .. }
            | Self::Files { flags, .. }
            | Self::Operator { flags, .. }
            | Self::Helper { flags, .. } => flags,
        }
    }

    fn base(&self) -> Option<&Location> {
        match self {
            Self::Operator { base, .. } | Self::Files { base, .. } => base.as_ref(),
            Self::Bundle { .. } | Self::Catalog { .. } | Self::Directory { .. } | Self::Helper { .. } => None,
        }
    }

    fn recipe(&self, base: Option<Base>, platform: &Platform, time: u64) -> anyhow::Result<Recipe> {
        let binary = |named: &Option<PathBuf>| helper_binary(named.as_ref(), platform);
        let platform_of = || platform.clone();
        Ok(match self {
            Self::Bundle { directory, .. } => bundle_recipe(directory, platform_of(), time)?,
            Self::Catalog {
                directory,
                binary: named,
                ..
            } => {
                let recipe = catalog_recipe(directory, &binary(named)?, platform_of(), time)?;
                let index =
                    source::bytes(directory).with_context(|| format!("{} cannot be served", directory.display()))?;
                with_index(recipe, source::INDEX_FILE, index)?
            }
            Self::Operator {
                binary,
                authorities,
                no_authorities,
                ..
            } => {
                if let Some(base) = base {
                    let binary = program_on_base(binary, platform)?;
                    let authorities = authorities.as_deref();
                    return Ok(operator_on_base_recipe(
                        &binary,
                        authorities,
                        base,
                        platform_of(),
                        time,
                    )?);
                }
                let authorities = authorities.as_deref().unwrap_or(Path::new(AUTHORITIES));
                let authorities = (!no_authorities && authorities.exists()).then_some(authorities);
                operator_recipe(&program_for(binary, platform)?, authorities, platform_of(), time)?
            }
            Self::Directory {
                directory, settings, ..
            } => {
                let mut recipe = directory_recipe(directory, platform_of(), time)?;
                settings.apply(&mut recipe);
                recipe
            }
            Self::Files { add, settings, .. } => {
                let mut recipe = Recipe::new(platform_of(), time);
                recipe
                    .layers
                    .push(("olmkit image build files".to_owned(), added_files(add, platform)?));
                recipe.base = base;
                settings.apply(&mut recipe);
                recipe
            }
            Self::Helper { binary: named, .. } => helper_recipe(&binary(named)?, platform_of(), time)?,
        })
    }
}

fn added_files(add: &[String], platform: &Platform) -> anyhow::Result<LayerBuilder> {
    let mut layer = LayerBuilder::new();
    for pair in add {
        let (source, target) = pair
            .rsplit_once(':')
            .with_context(|| format!("{pair:?} is not SOURCE:TARGET, such as target/app:/app"))?;
        layer.tree(&path_for(Path::new(source), platform), target)?;
    }
    Ok(layer)
}

/// The binary for the image: the specified one, else the helper in the running binary's directory, else the running
/// binary, which has the same commands.
pub fn helper_binary(named: Option<&PathBuf>, platform: &Platform) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) => Ok(program_for(path, platform)?),
        None => {
            let running = std::env::current_exe().context("cannot find the running program")?;
            let helper = running.with_file_name("olmkit-helper");
            let binary = if helper.is_file() { helper } else { running };
            check_program(&binary, platform).context("name a binary with --binary")?;
            Ok(binary)
        }
    }
}
