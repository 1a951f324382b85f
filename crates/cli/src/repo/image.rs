//! Images for preflight's container policies.

use std::path::Path;

use std::io::Read as _;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::limits;
use olmkit::temporary::Directory;
use olmkit_oci::Reference;
use olmkit_oci::registry::Platforms;
use olmkit_oci::source::{Fetched, Location, fetch};
use olmkit_oci::spec::Platform;
use olmkit_oci::unpack::LayerEntryKind;
use olmkit_submission::{
    Compared, Container, ContainerOutcome, LayerChange, LayerFiles, Layers, Package, check_container, check_dockerfile,
    distribution, packages, packages_with_files,
};

use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

/// Container policies of preflight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Policy {
    /// For images on the Universal Base Image
    #[default]
    Container,
    /// The same, for an image that may run as root
    Root,
    /// For images without packages, such as a static program
    ScratchNonroot,
    /// The same, for an image that may run as root
    ScratchRoot,
    /// For Konflux's pipelines
    Konflux,
}

impl From<Policy> for olmkit_submission::Policy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Container => Self::Container,
            Policy::Root => Self::Root,
            Policy::ScratchNonroot => Self::ScratchNonroot,
            Policy::ScratchRoot => Self::ScratchRoot,
            Policy::Konflux => Self::Konflux,
        }
    }
}

/// Before the name of a Dockerfile, instead of an image.
const DOCKERFILE: &str = "dockerfile:";
const LICENSES: &str = "/licenses";
/// Files that identify the operating system.
const OS_RELEASE: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];
/// The databases of packages that are looked for in each layer.
const LAYER_DATABASE: &str = "var/lib/rpm/rpmdb.sqlite";
const OLD_LAYER_DATABASE: &str = "var/lib/rpm/Packages";
/// Possible paths of the package database, in preflight's order.
const DATABASES: [&str; 3] = [
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages",
];

/// Pulls or opens an image and checks it.
pub fn check(image: &str, policy: Policy, registry: &RegistryFlags) -> anyhow::Result<ContainerOutcome> {
    if let Some(file) = image.strip_prefix(DOCKERFILE) {
        let text = limits::read_named(Path::new(file), &limits::SETTINGS_FILE)
            .with_context(|| format!("reading {file} failed"))?;
        return Ok(check_dockerfile(file, &String::from_utf8_lossy(&text), policy.into()));
    }
    let location: Location = image.parse()?;
    let client = registry.client()?;
    let platform = Platform::host();
    let fetched = block_on(fetch(&client, &location, &Platforms::One(platform.clone())))??;
    let parsed = fetched.image(&platform)?;
    let directory = Directory::new("preflight")?;
    let mut wanted = vec![LICENSES];
    wanted.extend(DATABASES);
    wanted.extend(OS_RELEASE);
    fetched.unpack(&platform, directory.path(), &wanted)?;
    let reference = reference(&location);
    let reference = reference.as_ref();
    let tag = reference.and_then(|reference| match (reference.tag(), reference.digest()) {
        (_, Some(_)) => None,
        (tag, None) => Some(tag.unwrap_or("latest").to_owned()),
    });
    let config = parsed.config.config;
    let container = Container {
        name: image.to_owned(),
        repository: reference.map(Reference::name),
        tag,
        labels: config.labels.into_iter().collect(),
        user: config.user,
        layers: parsed.manifest.layers.len(),
        licenses: licenses(&inside(directory.path(), LICENSES)),
        packages: database(directory.path()),
        modified: compare(&fetched, &platform, directory.path())?,
    };
    Ok(check_container(&container, policy.into()))
}

/// The image reference of a location.
fn reference(location: &Location) -> Option<Reference> {
    match location {
        Location::Registry(reference) | Location::Store(reference) => Some(reference.clone()),
        Location::Oci(_, name) | Location::OciArchive(_, name) | Location::DockerArchive(_, name) => {
            name.as_deref()?.parse().ok()
        }
        _ => None,
    }
}

fn inside(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// The sizes of the files below a directory. Links are not followed: they would lead out of the unpacked image.
fn licenses(directory: &Path) -> Option<Vec<u64>> {
    let entries = walkdir::WalkDir::new(directory).into_iter();
    let is_directory = std::fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
    is_directory.then(|| {
        let files = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file());
        files.filter_map(|entry| Some(entry.metadata().ok()?.len())).collect()
    })
}

/// The packages of the first database there is.
fn database(root: &Path) -> Option<Result<Vec<String>, String>> {
    let (name, path) = DATABASES
        .iter()
        .map(|name| (*name, inside(root, name)))
        .find(|(_, path)| path.is_file())?;
    if name.ends_with("/Packages") {
        return Some(Err(format!("{name} is a Berkeley DB, which is not supported")));
    }
    let bytes = limits::read_file(&path, &limits::CATALOG_FILE);
    Some(
        bytes
            .map_err(|error| format!("{name}: {error}"))
            .and_then(|bytes| packages(&bytes)),
    )
}

/// Compares the files of each layer with the packages of the image.
fn compare(fetched: &Fetched, platform: &Platform, root: &Path) -> anyhow::Result<Compared> {
    let Some(os_release) = os_release(root) else {
        return Ok(Compared::Failed("the image has no /etc/os-release".to_owned()));
    };
    let mut layers = Layers::new(distribution(&os_release));
    let mut now = (0, LayerFiles::default(), None::<Vec<Package>>);
    let mut has_old_database = false;
    fetched.for_each_entry(platform, |number, entry, content| {
        if number != now.0 {
            let (before, files, packages) = std::mem::replace(&mut now, (number, LayerFiles::default(), None));
            layers.push(before, files, packages);
        }
        has_old_database |= entry.path == OLD_LAYER_DATABASE;
        if entry.kind == LayerEntryKind::File && entry.path == LAYER_DATABASE {
            let mut bytes = Vec::new();
            let read = content.take(limits::CATALOG_FILE.get()).read_to_end(&mut bytes);
            // A database that cannot be read is none, for preflight too.
            now.2 = read.ok().and_then(|_| packages_with_files(&bytes).ok());
        }
        let change = match entry.kind {
            // Capabilities are set by rpm after the files.
            _ if entry.has_capabilities => return Ok(()),
            LayerEntryKind::File => LayerChange::File(entry.mode),
            LayerEntryKind::Directory => LayerChange::Directory,
            LayerEntryKind::Link(target) => LayerChange::Link(entry.mode, target),
            _ => return Ok(()),
        };
        now.1.add(entry.path, change);
        Ok(())
    })?;
    layers.push(now.0, now.1, now.2);
    if has_old_database {
        return Ok(Compared::Unknown(
            "the RPM database is a Berkeley DB, which is not supported",
        ));
    }
    Ok(Compared::Modified(layers.modified()))
}

/// The file that identifies the operating system. `/etc/os-release` is usually a link to the other file, and links are
/// not followed.
fn os_release(root: &Path) -> Option<String> {
    let mut files = OS_RELEASE.iter().map(|name| inside(root, name));
    let is_file = |path: &std::path::PathBuf| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let bytes = limits::read_file(&files.find(is_file)?, &limits::SETTINGS_FILE).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
