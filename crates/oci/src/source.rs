//! Source or destination of an image: a registry, the store, a layout, an archive. The spelling is that of skopeo,
//! podman and buildah.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use olmkit::temporary::Directory;

use super::archive;
use super::error::Error;
use super::layout::{Image, Layout, position};
use super::registry::{self, Client, Platforms};
use super::spec::{Descriptor, Platform};
use super::store::Store;
use super::unpack::{LayerEntry, Limits, Unpacked, for_each_entry, unpack, unpack_reachable};
use super::{InvalidReference, Reference};

/// A location of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// `REFERENCE` or `docker://REFERENCE`: a registry.
    Registry(Reference),
    /// `store:REFERENCE`: the image store.
    Store(Reference),
    /// `oci:DIRECTORY[:NAME]`: an OCI layout.
    Oci(PathBuf, Option<String>),
    /// `oci-archive:FILE[:NAME]`: an OCI layout as tar.
    OciArchive(PathBuf, Option<String>),
    /// `docker-archive:FILE[:NAME]`: what `docker save` writes.
    DockerArchive(PathBuf, Option<String>),
}

impl FromStr for Location {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        if let Some(rest) = text.strip_prefix("docker://") {
            return Ok(Self::Registry(rest.parse()?));
        }
        let Some((transport, rest)) = text.split_once(':') else {
            return Ok(Self::Registry(text.parse()?));
        };
        let file = || {
            let (path, name) = rest
                .split_once(':')
                .map_or((rest, None), |(path, name)| (path, Some(name.to_owned())));
            (PathBuf::from(path), name)
        };
        Ok(match transport {
            "store" => Self::Store(rest.parse()?),
            "oci" => Self::Oci(file().0, file().1),
            "oci-archive" => Self::OciArchive(file().0, file().1),
            "docker-archive" => Self::DockerArchive(file().0, file().1),
            _ => Self::Registry(text.parse()?),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transport, path, name) = match self {
            Self::Registry(reference) => return write!(formatter, "{reference}"),
            Self::Store(reference) => return write!(formatter, "store:{reference}"),
            Self::Oci(path, name) => ("oci", path, name),
            Self::OciArchive(path, name) => ("oci-archive", path, name),
            Self::DockerArchive(path, name) => ("docker-archive", path, name),
        };
        write!(formatter, "{transport}:{}", path.display())?;
        name.as_ref().map_or(Ok(()), |name| write!(formatter, ":{name}"))
    }
}

/// A complete image in a layout.
#[non_exhaustive]
pub struct Fetched {
    /// Where its blobs are.
    pub layout: Layout,
    /// The requested image, or the index that it came from.
    pub requested: Descriptor,
    /// The complete part of the layout: the image for the platform, or everything.
    pub descriptor: Descriptor,
    // Held because it may contain the layout, or lock it.
    _folder: Option<Directory>,
    _store: Option<Store>,
}

impl Fetched {
    /// An image of a store that the caller has open, perhaps for writing. [`fetch`] opens it once more and would wait for the
    /// caller's own lock.
    ///
    /// # Errors
    /// The store has no image of this name.
    pub fn stored(store: &Store, reference: &Reference) -> Result<Self, Error> {
        let descriptor = store.find(reference)?;
        Ok(Fetched {
            layout: store.layout().clone(),
            requested: descriptor.clone(),
            descriptor,
            _folder: None,
            _store: None,
        })
    }

    /// Manifest and configuration for a platform.
    pub fn image(&self, platform: &Platform) -> Result<Image, Error> {
        self.layout.image(&self.descriptor, platform)
    }

    /// Unpacks the image for a platform. See [`unpack`].
    pub fn unpack(&self, platform: &Platform, target: &Path, selection: &[&str]) -> Result<Unpacked, Error> {
        unpack(
            &self.layout,
            &self.image(platform)?,
            target,
            selection,
            &Limits::default(),
        )
    }

    /// Unpacks a part of the image for a platform. See [`unpack_reachable`].
    pub fn unpack_reachable(&self, platform: &Platform, target: &Path, names: &[&str]) -> Result<Unpacked, Error> {
        unpack_reachable(&self.layout, &self.image(platform)?, target, names, &Limits::default())
    }

    /// Visits all entries in the layers of a platform's image. See [`for_each_entry`].
    pub fn for_each_entry(
        &self,
        platform: &Platform,
        visit: impl FnMut(usize, LayerEntry<'_>, &mut dyn std::io::Read) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for_each_entry(&self.layout, &self.image(platform)?, &Limits::default(), visit)
    }
}

/// Fetches an image. From a registry it is pulled into a temporary layout, which is deleted with the result.
pub async fn fetch(client: &Client, location: &Location, platforms: &Platforms) -> Result<Fetched, Error> {
    let local = |layout: Layout, name: Option<&str>, folder: Option<Directory>| {
        let requested = layout.find(name)?;
        let descriptor = requested.clone();
        Ok(Fetched {
            layout,
            requested,
            descriptor,
            _folder: folder,
            _store: None,
        })
    };
    match location {
        Location::Registry(reference) => {
            let folder = temporary()?;
            let layout = Layout::create_temporary(folder.path())?;
            let pulled = client.pull(reference, &layout, platforms).await?;
            let (requested, descriptor) = (pulled.requested, pulled.image);
            Ok(Fetched {
                layout,
                requested,
                descriptor,
                _folder: Some(folder),
                _store: None,
            })
        }
        Location::Store(reference) => {
            let store = Store::read(&Store::default_path()?)?;
            let fetched = Fetched::stored(&store, reference)?;
            Ok(Fetched {
                _store: Some(store),
                ..fetched
            })
        }
        Location::Oci(path, name) => local(Layout::open(path)?, name.as_deref(), None),
        Location::OciArchive(path, name) => {
            let folder = temporary()?;
            local(archive::read_oci(path, folder.path())?, name.as_deref(), Some(folder))
        }
        Location::DockerArchive(path, name) => {
            let folder = temporary()?;
            let archive::DockerImages { layout, images, broken } = archive::read_docker_images(path, folder.path())?;
            let Some(number) = name.as_deref().and_then(position) else {
                let found = local(layout, name.as_deref(), Some(folder));
                return match broken {
                    Some(broken) if name.is_none() || found.is_err() => Err(broken),
                    _ => found,
                };
            };
            // The layout has an entry for each name, the archive one for each image.
            let requested = match (images.get(number), broken) {
                (Some(Some(image)), _) => image.clone(),
                (Some(None), Some(broken)) => return Err(broken),
                _ => {
                    return Err(Error::Missing {
                        what: format!("image @{number}"),
                        place: path.display().to_string(),
                        hint: format!(" (it contains {} images, from @0)", images.len()),
                    });
                }
            };
            Ok(Fetched {
                layout,
                descriptor: requested.clone(),
                requested,
                _folder: Some(folder),
                _store: None,
            })
        }
    }
}

/// Fetches the manifests of an image of a registry. [`deliver_from`] fetches its blobs as far as the target lacks them.
pub async fn fetch_documents(client: &Client, reference: &Reference, platforms: &Platforms) -> Result<Fetched, Error> {
    let folder = temporary()?;
    let layout = Layout::create_temporary(folder.path())?;
    let pulled = client.pull_documents(reference, &layout, platforms).await?;
    Ok(Fetched {
        layout,
        requested: pulled.requested,
        descriptor: pulled.image,
        _folder: Some(folder),
        _store: None,
    })
}

/// Copies an image of a registry, of which [`fetch_documents`] has fetched the manifests, to a location. Only blobs that the
/// location lacks are downloaded. `name` is as in [`deliver`].
pub async fn deliver_from(
    client: &Client,
    source: &Reference,
    fetched: &Fetched,
    target: &Location,
    name: &str,
) -> Result<(), Error> {
    let (layout, image) = (&fetched.layout, &fetched.descriptor);
    match target {
        Location::Registry(reference) => return Ok(client.push_from(source, layout, image, reference).await?),
        Location::Store(_) => {
            if let Ok(store) = Store::read(&Store::default_path()?) {
                borrow_blobs(layout, image, store.layout())?;
            }
        }
        Location::Oci(path, _) => {
            if let Ok(known) = Layout::open(path) {
                borrow_blobs(layout, image, &known)?;
            }
        }
        Location::OciArchive(..) | Location::DockerArchive(..) => {}
    }
    client.pull_blobs(source, image, layout).await?;
    deliver(client, layout, image, target, name, &[]).await
}

/// Takes the blobs that another layout has, if they are intact.
fn borrow_blobs(layout: &Layout, image: &Descriptor, from: &Layout) -> Result<(), Error> {
    let (_, blobs) = layout.documents_and_blobs(image)?;
    for blob in blobs {
        if from.check(&blob).is_ok() {
            layout.adopt(&from.blob_path(&blob.digest), &blob.digest)?;
        }
    }
    Ok(())
}

/// Copies an image of a layout to a location. `name` is what archives and layouts call it unless the place names it. A
/// registry may borrow blobs from `related` images.
pub async fn deliver(
    client: &Client,
    layout: &Layout,
    image: &Descriptor,
    target: &Location,
    name: &str,
    related: &[Reference],
) -> Result<(), Error> {
    if let Location::Oci(_, Some(own)) | Location::OciArchive(_, Some(own)) = target
        && position(own).is_some()
    {
        return Err(Error::Input(format!(
            "cannot write to {target}: {own} is a position; write a name, such as a tag"
        )));
    }
    if !matches!(target, Location::Registry(_)) {
        client.note_foreign_layers(layout, image)?;
    }
    match target {
        Location::Registry(reference) => Ok(client.push(layout, image, reference, related).await?),
        Location::Store(reference) => {
            layout.check_digest(image, reference)?;
            let store = Store::write(&Store::default_path()?)?;
            copy_blobs(layout, image, store.layout())?;
            store.set(reference, image)?;
            Ok(())
        }
        Location::Oci(path, own) => {
            let target = Layout::create(path)?;
            copy_blobs(layout, image, &target)?;
            target.set(own.as_deref().unwrap_or(name), image)
        }
        Location::OciArchive(path, own) => archive::write_oci(layout, image, own.as_deref().unwrap_or(name), path),
        Location::DockerArchive(path, own) => {
            let image = layout.image(image, &Platform::host())?;
            let tag = match own {
                Some(own) => archive::repository_tag(&own.parse()?),
                // A bare tag, as layouts have it, is not the name of a repository.
                None => name
                    .parse()
                    .ok()
                    .filter(|name: &Reference| !name.is_short() || name.tag().is_some())
                    .and_then(|name| archive::repository_tag(&name)),
            };
            archive::write_docker(layout, &image, tag.as_deref(), path)
        }
    }
}

/// As [`deliver`], for an image of a `docker-archive:`. Its manifest is not in the archive, so it may have the media types of OCI if a
/// registry rejects those of Docker. The delivered image.
pub async fn deliver_saved(
    client: &Client,
    layout: &Layout,
    image: &Descriptor,
    target: &Location,
    name: &str,
) -> Result<Descriptor, Error> {
    match deliver(client, layout, image, target, name, &[]).await {
        Err(Error::Registry(error)) if matches!(*error, registry::Error::DockerMediaType { .. }) => {
            client.note_conversion(target);
            let converted = layout.to_oci(image)?;
            deliver(client, layout, &converted, target, name, &[]).await?;
            Ok(converted)
        }
        result => result.map(|()| image.clone()),
    }
}

fn copy_blobs(from: &Layout, image: &Descriptor, to: &Layout) -> Result<(), Error> {
    for blob in from.reachable(image)? {
        let there = to.blob_path(&blob.digest);
        let whole = there.metadata().is_ok_and(|metadata| metadata.len() == blob.size);
        if !whole {
            // A part of it is worth nothing.
            let _ = std::fs::remove_file(there);
            from.check(&blob)?;
            to.adopt(&from.blob_path(&blob.digest), &blob.digest)?;
        }
    }
    Ok(())
}

fn temporary() -> Result<Directory, Error> {
    Directory::new("image").map_err(Error::file("create", &std::env::temp_dir()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::registry::{NoProgress, Options};

    #[test]
    fn pulled_blobs_are_not_hashed_again() {
        let folder = temporary().unwrap();
        let layout = Layout::create_temporary(folder.path()).unwrap();
        let blob = layout.write_blob("text/plain", b"memcached").unwrap();
        // No other user can do this.
        std::fs::write(layout.blob_path(&blob.digest), b"memcachee").unwrap();
        assert!(layout.check(&blob).is_ok());
        assert!(Layout::open(folder.path()).unwrap().check(&blob).is_err());
    }

    #[tokio::test]
    async fn positions_are_not_names_to_write() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("layout")).unwrap();
        let blob = layout.write_blob("text/plain", b"x").unwrap();
        let client = Client::new(Options::default(), Arc::new(NoProgress)).unwrap();
        for transport in ["oci", "oci-archive"] {
            let path = folder.path().join(transport);
            let target = format!("{transport}:{}:@0", path.display()).parse().unwrap();
            let result = deliver(&client, &layout, &blob, &target, "v1", &[]).await;
            let error = result.unwrap_err().to_string();
            assert!(error.contains("@0 is a position") && !path.exists(), "{error}");
        }
    }

    #[test]
    fn locations_are_spelled_as_skopeo_spells_them() {
        let reference: Reference = "localhost:5000/a:v1".parse().unwrap();
        let cases = [
            ("localhost:5000/a:v1", Location::Registry(reference.clone())),
            ("store:localhost:5000/a:v1", Location::Store(reference.clone())),
            ("oci:out/dir", Location::Oci("out/dir".into(), None)),
            (
                "oci-archive:/x/a.tar:localhost:5000/a:v1",
                Location::OciArchive("/x/a.tar".into(), Some("localhost:5000/a:v1".into())),
            ),
            (
                "docker-archive:a.tar:v1",
                Location::DockerArchive("a.tar".into(), Some("v1".into())),
            ),
        ];
        for (text, expected) in cases {
            let parsed: Location = text.parse().unwrap();
            assert_eq!(parsed, expected);
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(
            "docker://localhost:5000/a:v1".parse::<Location>().unwrap(),
            Location::Registry(reference)
        );
    }
}
