//! `olmkit catalog dockerfile`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::catalog::init;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog dockerfile catalog"])]
pub struct Args {
    /// Catalog directory. The Dockerfile is written to its parent directory.
    directory: PathBuf,
    /// Base image of the final stage. Scratch for the catalog files only.
    #[arg(short = 'i', long, default_value = OPM)]
    base_image: String,
    /// Image whose /bin/opm prepares the cache.
    #[arg(short, long, default_value = OPM)]
    builder_image: String,
    /// Labels, key=value.
    #[arg(short = 'l', long, value_delimiter = ',')]
    extra_labels: Vec<String>,
}

const OPM: &str = "quay.io/operator-framework/opm:latest";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.directory.is_dir(),
        "{} is not a directory",
        args.directory.display()
    );
    anyhow::ensure!(
        args.builder_image != "scratch",
        "the builder image cannot be scratch: it must contain /bin/opm"
    );
    let name = args
        .directory
        .file_name()
        .context("the directory needs a name")?
        .to_string_lossy();
    let mut labels = BTreeMap::new();
    for label in &args.extra_labels {
        let (key, value) = label
            .split_once('=')
            .with_context(|| format!("a label is written key=value, not {label:?}"))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    let path = init::dockerfile_path(&args.directory);
    let text = init::Dockerfile {
        directory: &name,
        base_image: &args.base_image,
        builder_image: &args.builder_image,
        labels,
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(|| format!("cannot make {}; it is never overwritten", path.display()))?;
    write!(file, "{text}")?;
    note!("wrote {}", path.display());
    Ok(ExitCode::SUCCESS)
}
