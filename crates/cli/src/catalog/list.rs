//! `olmkit catalog list`

use std::io::Write as _;
use std::process::ExitCode;

use clap::Subcommand;
use olmkit::catalog::render::reference::{Options, render};
use olmkit::catalog::{Catalog, listing, validate};

use super::images::RegistryImages;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: List,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Subcommand)]
enum List {
    /// List packages and their default channels
    ///
    /// Use it to find the operators in a catalog.
    #[command(visible_alias = "package")]
    #[command(after_help = examples!["olmkit catalog list packages quay.io/example/catalog:v1"])]
    Packages {
        /// Catalog directory or image.
        catalog: String,
    },
    /// List channels and their heads
    ///
    /// Use it to see the version that new users of each channel get.
    #[command(visible_alias = "channel")]
    #[command(after_help = examples!["olmkit catalog list channels catalog cache-operator"])]
    Channels {
        /// Catalog directory or image.
        catalog: String,
        /// Only this package.
        package: Option<String>,
    },
    /// List bundles with upgrade edges and images
    ///
    /// Use it to see which bundles a channel contains and which versions each one replaces or skips.
    #[command(visible_alias = "bundle")]
    #[command(after_help = examples!["olmkit catalog list bundles catalog cache-operator"])]
    Bundles {
        /// Catalog directory or image.
        catalog: String,
        /// Only this package.
        package: Option<String>,
    },
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checked = |reference: &String| -> anyhow::Result<Catalog> {
        let catalog = render(
            std::slice::from_ref(reference),
            &Options::default(),
            &RegistryImages::new(&args.registry),
        )?;
        match validate::catalog_verdict(&catalog).opm_text {
            Some(error) => anyhow::bail!("{error}"),
            None => Ok(catalog),
        }
    };
    // opm's error message.
    let checked_with = |reference: &String, package: &Option<String>| -> anyhow::Result<Catalog> {
        let catalog = checked(reference)?;
        match package {
            Some(name) if !catalog.packages.iter().any(|package| package.name == *name) => {
                anyhow::bail!("package {} not found", olmkit::go::strconv::quote(name))
            }
            _ => Ok(catalog),
        }
    };
    let table = match &args.what {
        List::Packages { catalog } => listing::packages(&checked(catalog)?),
        List::Channels { catalog, package } => listing::channels(&checked_with(catalog, package)?, package.as_deref()),
        List::Bundles { catalog, package } => listing::bundles(&checked_with(catalog, package)?, package.as_deref()),
    };
    write!(terminal::output(), "{table}")?;
    Ok(ExitCode::SUCCESS)
}
