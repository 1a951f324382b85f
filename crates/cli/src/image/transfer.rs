//! `olmkit image copy`, `save` and `load`: copies images between locations.

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit_oci::layout::names;
use olmkit_oci::registry::Platforms;
use olmkit_oci::source::{deliver_from, deliver_saved, fetch_documents};
use olmkit_oci::spec::Platform;
use olmkit_oci::store::Store;
use olmkit_oci::{Fetched, Location, Reference, archive, deliver, fetch};

use super::or_in_store;
use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image copy quay.io/example/cache-operator:v1 registry.example.com/mirror/cache-operator:v1", "olmkit image copy docker-archive:image.tar store:quay.io/example/cache-operator:v1"])]
pub struct CopyArgs {
    /// Source: REFERENCE, store:REFERENCE, oci:DIR[:NAME], oci-archive:FILE[:NAME], docker-archive:FILE[:NAME]
    source: Location,
    /// Destination
    target: Location,
    /// Copy only this platform's image of an index [default: all]
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
}

pub fn copy(args: &CopyArgs, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    // Docker archives have no index.
    let single = matches!(args.target, Location::DockerArchive(..)).then(Platform::host);
    transfer(&args.source, &args.target, args.platform.clone().or(single), flags)
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image save quay.io/example/cache-operator:v1 -o image.tar"])]
pub struct SaveArgs {
    /// Image in a registry, or store:REFERENCE in the image store
    source: Location,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write a docker-archive for `docker load` instead of an OCI archive
    #[arg(long)]
    docker: bool,
    /// Save only this platform's image of an index
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
}

pub fn save(args: &SaveArgs, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let name = match &args.source {
        Location::Registry(reference) | Location::Store(reference) => Some(reference.with_default_tag().to_string()),
        _ => None,
    };
    let single = args.docker.then(Platform::host);
    let target = if args.docker {
        Location::DockerArchive(args.output.clone(), name)
    } else {
        Location::OciArchive(args.output.clone(), name)
    };
    transfer(&args.source, &target, args.platform.clone().or(single), flags)
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image load image.tar"])]
pub struct LoadArgs {
    /// The archive: written by `olmkit image save`, `docker save`, `podman save` or `skopeo copy`
    file: PathBuf,
    /// The name to store the image under [default: the names in the archive]
    #[arg(short, long, value_name = "REFERENCE")]
    tag: Option<Reference>,
}

/// Brings the images of an archive into the image store.
pub fn load(args: &LoadArgs, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let folder = olmkit::temporary::Directory::new("archive")?;
    let layout = archive::read(&args.file, folder.path())?;
    let client = flags.client()?;
    let images = layout.index()?.manifests;
    anyhow::ensure!(
        args.tag.is_none()
            || images
                .iter()
                .all(|image| Some(&image.digest) == images.first().map(|first| &first.digest)),
        "{} contains several images; load them without --tag",
        args.file.display()
    );
    for image in images {
        let own = names(&image).next();
        let reference = match (&args.tag, own) {
            (Some(tag), _) => tag.clone(),
            (None, Some(own)) => own.parse()?,
            (None, None) => anyhow::bail!("the image in {} has no name; give one with --tag", args.file.display()),
        };
        let target = Location::Store(reference.clone());
        block_on(deliver(&client, &layout, &image, &target, "", &[]))??;
        println!("{}", reference.pinned(image.digest));
    }
    Ok(ExitCode::SUCCESS)
}

fn transfer(
    source: &Location,
    target: &Location,
    platform: Option<Platform>,
    flags: &RegistryFlags,
) -> anyhow::Result<ExitCode> {
    if let (Location::Store(from), Location::Store(to)) = (source, target) {
        // One lock for both.
        let store = Store::write(&Store::default_path()?)?;
        let fetched = Fetched::stored(&store, from)?;
        let image = match &platform {
            Some(platform) => fetched.image(platform)?.descriptor,
            None => fetched.descriptor,
        };
        super::warn_of_damage(&store.set(to, &image)?);
        println!("{}", image.digest);
        return Ok(ExitCode::SUCCESS);
    }
    let client = flags.client()?;
    let platforms = platform.clone().map_or(Platforms::All, Platforms::One);
    // The image's name in archives and layouts, unless the target specifies one.
    let name = match source {
        Location::Registry(reference) | Location::Store(reference) => reference.with_default_tag().to_string(),
        _ => "latest".to_owned(),
    };
    let is_docker = matches!(target, Location::DockerArchive(..));
    let image = block_on(async {
        if let Location::Registry(reference) = source {
            let fetched = or_in_store(&[source], fetch_documents(&client, reference, &platforms).await)?;
            deliver_from(&client, reference, &fetched, target, &name).await?;
            return anyhow::Ok(fetched.descriptor);
        }
        let fetched = fetch(&client, source, &platforms).await?;
        let image = match &platform {
            Some(platform) => fetched.image(platform)?.descriptor,
            None => fetched.descriptor.clone(),
        };
        // Docker archives have full names, which the source may have too.
        let name = names(&fetched.requested).next().filter(|_| is_docker).unwrap_or(&name);
        if let Location::DockerArchive(..) = source {
            return Ok(deliver_saved(&client, &fetched.layout, &image, target, name).await?);
        }
        deliver(&client, &fetched.layout, &image, target, name, &[]).await?;
        anyhow::Ok(image)
    })??;
    println!("{}", image.digest);
    Ok(ExitCode::SUCCESS)
}
