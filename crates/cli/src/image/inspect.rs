//! `olmkit image inspect`, `digest` and `diff`.

use std::process::ExitCode;

use olmkit::object::UntrustedText;
use olmkit_oci::diff::diff;
use olmkit_oci::layout::Image;
use olmkit_oci::registry::{Client, Platforms};
use olmkit_oci::spec::{Descriptor, Platform};
use olmkit_oci::{Error, Layout, Location, fetch};
use serde_json::json;

use super::or_in_store;
use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image inspect quay.io/example/cache-operator:v1", "olmkit image inspect oci:layout -o json"])]
pub struct InspectArgs {
    /// The image: REFERENCE, store:REFERENCE, oci:DIR[:NAME], oci-archive:FILE[:NAME], docker-archive:FILE[:NAME]
    image: Location,
    /// The image of an index to show [default: linux on this machine's architecture]
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    Text,
    Json,
}

pub fn inspect(args: &InspectArgs, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let platform = args.platform.clone().unwrap_or_else(Platform::host);
    let client = flags.client()?;
    let (requested, image) = or_in_store(&[&args.image], block_on(describe(&client, &args.image, &platform))?)?;
    match args.output {
        Form::Json => crate::terminal::json(&json!({
            "name": args.image.to_string(),
            "digest": requested.digest,
            "mediaType": requested.media_type,
            "imageDigest": image.descriptor.digest,
            "manifest": image.manifest,
            "config": image.config,
        }))?,
        Form::Text => print_text(&args.image.to_string(), &requested.digest.to_string(), &image),
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes an image without fetching its layers from a registry.
async fn describe(client: &Client, place: &Location, platform: &Platform) -> Result<(Descriptor, Image), Error> {
    if let Location::Registry(reference) = place {
        let folder = olmkit::temporary::Directory::new("image").map_err(|source| Error::File {
            action: "create",
            path: std::env::temp_dir(),
            source,
        })?;
        let layout = Layout::create_temporary(folder.path())?;
        let pulled = client.describe(reference, &layout, platform).await?;
        let image = layout.image(&pulled.image, platform)?;
        return Ok((pulled.requested, image));
    }
    let fetched = fetch(client, place, &Platforms::One(platform.clone())).await?;
    let image = fetched.image(platform)?;
    Ok((fetched.requested.clone(), image))
}

fn print_text(name: &str, digest: &str, image: &Image) {
    let run = &image.config.config;
    let line = |key: &str, value: &str| {
        if !value.is_empty() {
            println!("{key:<12}{}", UntrustedText::new(value));
        }
    };
    line("Name", name);
    line("Digest", digest);
    if digest != image.descriptor.digest.to_string() {
        line("Image", &image.descriptor.digest.to_string());
    }
    line(
        "Platform",
        &format!("{}/{}", image.config.os, image.config.architecture),
    );
    line("Created", image.config.created.as_deref().unwrap_or_default());
    line("User", &run.user);
    line("Entrypoint", &run.entrypoint.join(" "));
    line("Cmd", &run.cmd.join(" "));
    line("Workdir", &run.working_dir);
    line("Env", &run.env.join(" "));
    let total: u64 = image.manifest.layers.iter().map(|layer| layer.size).sum();
    line(
        "Layers",
        &format!("{}, {total} bytes compressed", image.manifest.layers.len()),
    );
    for layer in &image.manifest.layers {
        println!("  {} {:>12} bytes", layer.digest, layer.size);
    }
    for (title, map) in [("Labels", &run.labels), ("Annotations", &image.manifest.annotations)] {
        if !map.is_empty() {
            println!("{title}");
        }
        for (key, value) in map {
            println!("  {}={}", UntrustedText::new(key), UntrustedText::new(value));
        }
    }
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image digest quay.io/example/cache-operator:v1"])]
pub struct DigestArgs {
    /// The image
    image: Location,
}

/// Prints the current digest of a reference.
pub fn digest(args: &DigestArgs, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let client = flags.client()?;
    let digest = async {
        match &args.image {
            Location::Registry(reference) => Ok(client.resolve(reference).await?.digest),
            other => Ok::<_, Error>(fetch(&client, other, &Platforms::All).await?.requested.digest),
        }
    };
    let digest = or_in_store(&[&args.image], block_on(digest)?)?;
    println!("{digest}");
    Ok(ExitCode::SUCCESS)
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit image diff quay.io/example/cache-operator:v1 store:quay.io/example/cache-operator:v1"])]
pub struct DiffArgs {
    /// The first image
    first: Location,
    /// The second image
    second: Location,
    /// The images of indexes to compare [default: linux on this machine's architecture]
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,
}

/// Prints the differences. Exit code 1 if there are any.
pub fn compare(args: &DiffArgs, flags: &RegistryFlags) -> anyhow::Result<ExitCode> {
    let platform = args.platform.clone().unwrap_or_else(Platform::host);
    let client = flags.client()?;
    let differences = async {
        let platforms = Platforms::One(platform.clone());
        let first = fetch(&client, &args.first, &platforms).await?;
        let second = fetch(&client, &args.second, &platforms).await?;
        diff(
            (&first.layout, &first.image(&platform)?),
            (&second.layout, &second.image(&platform)?),
        )
    };
    let differences = or_in_store(&[&args.first, &args.second], block_on(differences)?)?;
    if args.output == Form::Json {
        crate::terminal::json(&differences)?;
    } else {
        for difference in &differences {
            println!("{}", UntrustedText::new(&difference.what));
            println!("  - {}", side(difference.first.as_deref()));
            println!("  + {}", side(difference.second.as_deref()));
        }
    }
    Ok(if differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The value of one of two images.
fn side(text: Option<&str>) -> UntrustedText<'_> {
    UntrustedText::new(text.unwrap_or("(absent)"))
}
