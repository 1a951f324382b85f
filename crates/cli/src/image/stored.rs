//! `olmkit image list`, `rm` and `prune`: the contents of the image store.

use std::process::ExitCode;

use olmkit::catalog::listing::Table;
use olmkit_oci::Reference;
use olmkit_oci::layout::REFERENCE_NAME;
use olmkit_oci::store::Store;

use super::warn_of_damage;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image list"])]
pub struct ListArgs {}

pub fn list(_: &ListArgs) -> anyhow::Result<ExitCode> {
    let store = Store::read(&Store::default_path()?)?;
    let index = store.layout().index()?;
    let name = |name: Option<&String>| name.cloned().unwrap_or_default();
    let mut rows: Vec<Vec<String>> = index
        .manifests
        .iter()
        .map(|entry| vec![name(entry.annotations.get(REFERENCE_NAME)), entry.digest.to_string()])
        .collect();
    rows.sort();
    let table = Table {
        headings: vec!["NAME", "DIGEST"],
        rows,
    };
    print!("{table}");
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image rm quay.io/example/cache-operator:v1"])]
pub struct RemoveArgs {
    /// Images of the store
    #[arg(required = true)]
    images: Vec<Reference>,
}

pub fn remove(args: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let store = Store::write(&Store::default_path()?)?;
    // All or none: a misspelt name removes nothing.
    for image in &args.images {
        store.find(image)?;
    }
    for image in &args.images {
        store.layout().remove(&Store::name(image))?;
    }
    free(&store)
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image prune", "olmkit image prune --all"])]
pub struct PruneArgs {
    /// Remove all images, not only unused data
    #[arg(long)]
    all: bool,
}

pub fn prune(args: &PruneArgs) -> anyhow::Result<ExitCode> {
    let store = Store::write(&Store::default_path()?)?;
    if args.all {
        for image in store.references()? {
            store.layout().remove(&image.to_string())?;
        }
    }
    free(&store)
}

fn free(store: &Store) -> anyhow::Result<ExitCode> {
    let pruned = store.layout().prune()?;
    warn_of_damage(&pruned);
    note!("freed {} kB", pruned.bytes / 1000);
    Ok(ExitCode::SUCCESS)
}
