//! `olmkit image`

pub(super) mod build;
mod build_flags;
mod inspect;
mod output;
mod push;
mod stored;
mod transfer;

use std::process::ExitCode;

use olmkit_oci::layout::Pruned;
use olmkit_oci::store::Store;
use olmkit_oci::{Error, Location};

use super::registry_flags::RegistryFlags;

/// Build, copy and inspect images without a container daemon
///
/// `build`, `load`, `push`, `list`, `rm` and `prune` work on the image store. All other commands take REFERENCE (a registry),
/// store:REFERENCE (the image store), oci:DIR, oci-archive:FILE or docker-archive:FILE.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(clap::Subcommand)]
#[command(defer = true)]
enum Command {
    /// Build an image
    ///
    /// Without --output the image goes to the image store (OLMKIT_IMAGE_STORE, else ~/.local/share/olmkit/images)
    /// under its --tag, from where `olmkit image push` takes it. Times come from SOURCE_DATE_EPOCH (0 without it).
    Build(Box<build::Args>),
    /// Push an image from the image store to a registry
    ///
    /// Use it after `image build`. Prints the digest. Credentials come from docker, podman or skopeo.
    Push(push::Args),
    /// Copy an image to a registry, the image store or files
    ///
    /// Use it to mirror an image or to move it to a machine without network. Transfers only the blobs that the
    /// destination lacks.
    Copy(transfer::CopyArgs),
    /// Save an image to an archive
    ///
    /// Use it to move an image to a machine without network. `image load`, docker, podman and skopeo read the archive.
    Save(transfer::SaveArgs),
    /// Load the images of an archive into the image store
    ///
    /// Reads archives from docker, podman, skopeo and buildah. Use it on a machine without network.
    Load(transfer::LoadArgs),
    /// Show an image's digest, settings, labels and layers
    ///
    /// Use it to check an image before you publish or install it.
    Inspect(inspect::InspectArgs),
    /// Print the digest of a reference
    ///
    /// Use it to pin an image: the output is only the digest, for scripts.
    Digest(inspect::DigestArgs),
    /// Compare the files and configuration of two images
    ///
    /// Use it to check that a rebuild or another tool made the same image. Ignores how layers are packed. Exits with 1
    /// if the images differ.
    Diff(inspect::DiffArgs),
    /// List the images of the image store
    ///
    /// The image store contains the images that you built, loaded or copied to `store:`.
    #[command(visible_alias = "ls")]
    List(stored::ListArgs),
    /// Remove images from the image store
    ///
    /// Also frees the disk space that no other image uses. If a name does not exist, no image is removed.
    Rm(stored::RemoveArgs),
    /// Remove unused data from the image store
    ///
    /// Use it to free disk space after you have built images with the same tag several times.
    Prune(stored::PruneArgs),
}

/// Reports damaged images of the store. They do not affect the others.
pub(super) fn warn_of_damage(pruned: &Pruned) {
    for (name, problem) in &pruned.damaged {
        eprintln!(
            "warning: {name} in the image store is damaged; rebuild it; prune cannot free space until then: {problem}"
        );
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let flags = &args.registry;
    match &args.command {
        Command::Build(args) => build::run(args, flags),
        Command::Push(args) => push::run(args, flags),
        Command::Copy(args) => transfer::copy(args, flags),
        Command::Save(args) => transfer::save(args, flags),
        Command::Load(args) => transfer::load(args, flags),
        Command::Inspect(args) => inspect::inspect(args, flags),
        Command::Digest(args) => inspect::digest(args, flags),
        Command::Diff(args) => inspect::compare(args, flags),
        Command::List(args) => stored::list(args),
        Command::Rm(args) => stored::remove(args),
        Command::Prune(args) => stored::prune(args),
    }
}

/// If an image was built locally and the user omits `store:`, the registry is queried. If that fails, the message
/// mentions the local image.
fn or_in_store<T>(places: &[&Location], result: Result<T, Error>) -> anyhow::Result<T> {
    result.map_err(|error| {
        let store = Store::default_path().and_then(|path| Store::read(&path));
        let stored = places.iter().find_map(|place| match (place, &store) {
            (Location::Registry(reference), Ok(store)) if store.find(reference).is_ok() => Some(reference),
            _ => None,
        });
        match stored {
            Some(reference) => {
                anyhow::anyhow!("{error}; the image store has an image of this name: write store:{reference}")
            }
            None => error.into(),
        }
    })
}
