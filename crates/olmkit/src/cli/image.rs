//! `olmkit image`

mod build;
mod push;

use std::process::ExitCode;

use super::registry_flags::RegistryFlags;

/// Build images and move them between registries, layouts and archives, without a daemon.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Build an image; the same input gives the same digest everywhere
    ///
    /// Without --output the image goes to the image store (OLMKIT_IMAGE_STORE, else ~/.local/share/olmkit/images)
    /// under its --tag, from where `olmkit image push` takes it. Times come from SOURCE_DATE_EPOCH (0 without it).
    Build(build::Args),
    /// Push an image of the image store, or of a layout or archive, to a registry
    Push(push::Args),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Build(build) => build::run(build, &args.registry),
        Command::Push(push) => push::run(push, &args.registry),
    }
}
