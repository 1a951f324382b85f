//! The programs that OLM starts in pods: the same binary under other names (`/bin/cp`, `/bin/cpb`, `/bin/opm`, …).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{Extraction, copy_bundle, copy_content, copy_files, extract};
use crate::runtime::block_on;
use clap::Parser;

/// Runs the command with this name. `None` if there is none.
pub fn run(name: &str, arguments: Vec<OsString>) -> Option<anyhow::Result<ExitCode>> {
    let result = match name {
        "cp" => copy(arguments),
        "cpb" => copy_of_bundle(),
        "copy-content" => content(arguments),
        _ => return None,
    };
    Some(result.map(|()| ExitCode::SUCCESS))
}

fn copy(arguments: Vec<OsString>) -> anyhow::Result<()> {
    let paths: Vec<PathBuf> = arguments.into_iter().skip(1).map(PathBuf::from).collect();
    Ok(copy_files(&paths)?)
}

/// The original ignores a single argument, and more are never passed: the target is `./bundle`.
fn copy_of_bundle() -> anyhow::Result<()> {
    let (annotations, manifests) = copy_bundle(Path::new("."), Path::new("./bundle"))?;
    println!(
        "copied {} and {} to ./bundle",
        annotations.display(),
        manifests.display()
    );
    Ok(())
}

/// Copy catalog and cache content
#[derive(Parser)]
#[command(name = "copy-content")]
struct Content {
    /// Catalog to copy
    #[arg(long = "catalog.from", value_name = "PATH")]
    catalog_from: PathBuf,
    /// Destination of the catalog
    #[arg(long = "catalog.to", value_name = "PATH")]
    catalog_to: PathBuf,
    /// Cache to copy
    #[arg(long = "cache.from", value_name = "PATH", requires = "cache_to")]
    cache_from: Option<PathBuf>,
    /// Destination of the cache
    #[arg(long = "cache.to", value_name = "PATH", requires = "cache_from")]
    cache_to: Option<PathBuf>,
}

fn content(arguments: Vec<OsString>) -> anyhow::Result<()> {
    let flags = Content::parse_from(arguments);
    let mut pairs = vec![(flags.catalog_from, flags.catalog_to)];
    pairs.extend(flags.cache_from.zip(flags.cache_to));
    Ok(copy_content(&pairs)?)
}

/// `opm alpha bundle extract`: write a bundle directory into a ConfigMap, as OLM's unpack job does.
#[derive(clap::Args)]
pub struct ExtractArgs {
    /// Directory with manifests/ and metadata/
    #[arg(short, long, value_name = "DIR", default_value = "/")]
    manifestsdir: PathBuf,
    /// The ConfigMap to fill. It must exist
    #[arg(short, long, value_name = "NAME")]
    configmapname: String,
    /// Its namespace
    #[arg(short, long, default_value = "openshift-operator-lifecycle-manager")]
    namespace: String,
    /// Limit in bytes for the sum of the stored files
    #[arg(short = 'l', long, value_name = "BYTES", default_value_t = 1 << 20)]
    datalimit: u64,
    /// Store base64 of gzip instead of text
    #[arg(short = 'z', long)]
    gzip: bool,
    /// Path of a kubeconfig [default: KUBECONFIG, else the pod's own account]
    #[arg(short, long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Ignored (opm compatibility)
    #[arg(long, hide = true)]
    debug: bool,
}

pub fn run_extract(args: &ExtractArgs) -> anyhow::Result<ExitCode> {
    let extraction = Extraction {
        directory: args.manifestsdir.clone(),
        config_map: args.configmapname.clone(),
        namespace: args.namespace.clone(),
        limit: args.datalimit,
        gzip: args.gzip,
        source_image: std::env::var("CONTAINER_IMAGE").ok(),
    };
    block_on(extract(&extraction, args.kubeconfig.as_deref()))??;
    eprintln!(
        "wrote {} to ConfigMap {}/{}",
        args.manifestsdir.display(),
        args.namespace,
        args.configmapname
    );
    Ok(ExitCode::SUCCESS)
}
