//! `olmkit image build`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use olmkit::image::build::{
    Recipe, build_index, bundle_recipe, catalog_recipe, directory_recipe, helper_recipe, operator_recipe,
    source_date_epoch,
};
use olmkit::image::spec::{MediaTypes, Platform};
use olmkit::image::store::Store;
use olmkit::image::{Layout, Reference};

use crate::cli::registry_flags::RegistryFlags;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    /// A bundle image from a bundle directory; labels come from metadata/annotations.yaml
    Bundle {
        /// The bundle directory
        #[arg(default_value = "bundle")]
        directory: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// A catalog image from the directory of a file-based catalog, with the server in it
    Catalog {
        /// The catalog directory
        #[arg(default_value = "catalog")]
        directory: PathBuf,
        /// The static olmkit binary that serves the catalog; {os} and {arch} stand for the platform [default: this one]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    /// An operator image from a static binary, which becomes the entry point /<file name>
    Operator {
        /// The static binary; {os} and {arch} stand for the platform
        binary: PathBuf,
        /// Certificate authorities (PEM) to put into the image
        #[arg(long, value_name = "FILE", default_value = "/etc/ssl/certs/ca-certificates.crt")]
        authorities: PathBuf,
        /// Put no certificate authorities into the image
        #[arg(long, conflicts_with = "authorities")]
        no_authorities: bool,
        #[command(flatten)]
        common: Common,
    },
    /// An image of a directory as it is, for programs that are more than one static file
    Directory {
        /// What becomes the root of the image
        directory: PathBuf,
        /// The user the program runs as
        #[arg(long, value_name = "USER[:GROUP]", default_value = "65532:65532")]
        user: String,
        /// A variable of the environment; several are allowed
        #[arg(long, value_name = "NAME=VALUE", value_parser = key_value)]
        env: Vec<(String, String)>,
        /// The program, and with further --entrypoint its fixed arguments
        #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
        entrypoint: Vec<String>,
        /// Arguments unless the caller gives others
        #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
        cmd: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// The helper image: what OLM starts in pods (--util-image, --opmImage)
    Helper {
        /// The static olmkit binary; {os} and {arch} stand for the platform [default: this one]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
}

/// What every kind of image takes.
#[derive(clap::Args)]
struct Common {
    /// The image's name
    #[arg(short, long, value_name = "REFERENCE")]
    tag: Reference,
    /// Platforms, such as linux/amd64,linux/arm64; several make an index [default: linux on this machine's architecture]
    #[arg(long, value_delimiter = ',', value_name = "OS/ARCH")]
    platform: Vec<Platform>,
    /// Add or replace a label
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    label: Vec<(String, String)>,
    /// Add or replace an annotation of the manifest
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    annotation: Vec<(String, String)>,
    /// Use Docker's media types instead of OCI's
    #[arg(long)]
    docker: bool,
}

pub fn run(args: &Args, _flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let common = args.kind.common();
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let time = source_date_epoch(epoch.as_deref())?;
    let platforms = if common.platform.is_empty() {
        vec![Platform::host()]
    } else {
        common.platform.clone()
    };
    let store = Store::write(&Store::default_path()?)?;
    let media_types = if common.docker {
        MediaTypes::Docker
    } else {
        MediaTypes::Oci
    };
    let mut built = Vec::new();
    for platform in &platforms {
        let mut recipe = args.kind.recipe(platform, time)?;
        recipe.media_types = media_types;
        recipe.config.labels.extend(common.label.iter().cloned());
        recipe.annotations.extend(common.annotation.iter().cloned());
        built.push(build(&recipe, store.layout())?);
    }
    let image = match built.as_slice() {
        [only] => only.clone(),
        _ => build_index(
            store.layout(),
            media_types,
            built,
            common.annotation.iter().cloned().collect(),
        )?,
    };
    store.set(&common.tag, &image)?;
    println!("{}", common.tag.pinned(image.digest));
    Ok(ExitCode::SUCCESS)
}

fn build(recipe: &Recipe, layout: &Layout) -> anyhow::Result<olmkit::image::spec::Descriptor> {
    Ok(recipe.build(layout)?)
}

impl Kind {
    fn common(&self) -> &Common {
        match self {
            Self::Bundle { common, .. }
            | Self::Catalog { common, .. }
            | Self::Directory { common, .. }
            | Self::Operator { common, .. }
            | Self::Helper { common, .. } => common,
        }
    }

    fn recipe(&self, platform: &Platform, time: u64) -> anyhow::Result<Recipe> {
        let platform = platform.clone();
        Ok(match self {
            Self::Bundle { directory, .. } => bundle_recipe(directory, platform, time)?,
            Self::Catalog { directory, binary, .. } => {
                catalog_recipe(directory, &helper_binary(binary.as_ref(), &platform)?, platform, time)?
            }
            Self::Operator {
                binary,
                authorities,
                no_authorities,
                ..
            } => {
                let authorities = (!no_authorities && authorities.exists()).then_some(authorities.as_path());
                operator_recipe(&for_platform(binary, &platform), authorities, platform, time)?
            }
            Self::Directory {
                directory,
                user,
                env,
                entrypoint,
                cmd,
                ..
            } => {
                let mut recipe = directory_recipe(directory, platform, time)?;
                recipe.config.user = user.clone();
                recipe.config.env = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
                recipe.config.entrypoint = entrypoint.clone();
                recipe.config.cmd = cmd.clone();
                recipe
            }
            Self::Helper { binary, .. } => helper_recipe(&helper_binary(binary.as_ref(), &platform)?, platform, time)?,
        })
    }
}

/// The binary for the image: the one named, else the running program itself.
fn helper_binary(named: Option<&PathBuf>, platform: &Platform) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) => Ok(for_platform(path, platform)),
        None => std::env::current_exe().context("cannot find the running program; name a binary with --binary"),
    }
}

fn for_platform(path: &std::path::Path, platform: &Platform) -> PathBuf {
    let text = path.to_string_lossy();
    PathBuf::from(
        text.replace("{os}", &platform.os)
            .replace("{arch}", &platform.architecture),
    )
}

fn key_value(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("{text:?} is not KEY=VALUE"))
}
