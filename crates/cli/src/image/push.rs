//! `olmkit image push`

use std::process::ExitCode;

use olmkit_oci::Reference;
use olmkit_oci::store::Store;

use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image push quay.io/example/cache-operator-bundle:v1"])]
pub struct Args {
    /// Image, by the name given to --tag
    image: Reference,
    /// Name to push as [default: the image's name]
    #[arg(value_name = "AS")]
    target: Option<Reference>,
}

pub fn run(args: &Args, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let store = Store::read(&Store::default_path()?)?;
    let image = store.find(&args.image)?;
    let target = args.target.as_ref().unwrap_or(&args.image).with_default_tag();
    let client = flags.client()?;
    let related = store.references()?;
    block_on(client.push(store.layout(), &image, &target, &related))??;
    println!("{}", target.pinned(image.digest));
    Ok(ExitCode::SUCCESS)
}
