//! Pulling an image into a layout, from the first mirror that has it.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::error::Error;
use super::peer::Peer;
use super::{Client, Reference};
use crate::digest::Digest;
use crate::json;
use crate::layout::{Layout, choose_platform, is_document, refused_manifest};
use crate::limits::{self, INDEX_DEPTH};
use crate::spec::{Descriptor, Manifest, Platform, check_unambiguous, is_index, is_manifest};

/// How many blobs are transferred at the same time.
pub(super) const AT_ONCE: usize = 4;

/// The images of an index to pull.
#[derive(Debug, Clone)]
pub enum Platforms {
    /// All of them.
    All,
    /// The one for a platform.
    One(Platform),
}

/// The state of a pull.
struct Pull<'p> {
    layout: &'p Layout,
    platforms: &'p Platforms,
    extent: Extent,
    /// Manifests and indexes that are complete in the layout: an index may name one any number of times.
    complete: BTreeSet<Digest>,
    /// Manifests and indexes that were asked for.
    manifests: usize,
    /// Bytes of blobs so far.
    bytes: u64,
}

impl<'p> Pull<'p> {
    fn new(layout: &'p Layout, platforms: &'p Platforms, extent: Extent) -> Self {
        Pull {
            layout,
            platforms,
            extent,
            complete: BTreeSet::new(),
            manifests: 0,
            bytes: 0,
        }
    }
}

/// How much of an image is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Description,
    Documents,
}

/// The result of a pull.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pulled {
    /// The image or index that the reference resolves to.
    pub requested: Descriptor,
    /// The complete part of the layout: the same, or the index's image for the chosen platform.
    pub image: Descriptor,
}

impl Client {
    /// The manifest or index that a reference resolves to.
    pub async fn resolve(&self, reference: &Reference) -> Result<Descriptor, Error> {
        let reference = self.full_name(reference)?;
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            peer.resolve_manifest(&reference.version()).await
        })
        .await
    }

    /// Fetches a manifest or index without anything it points at.
    pub async fn manifest(&self, reference: &Reference) -> Result<(Descriptor, Vec<u8>), Error> {
        let reference = self.full_name(reference)?;
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            peer.fetch_manifest(&reference.version()).await
        })
        .await
    }

    /// Pulls an image into a layout, without naming it there.
    pub async fn pull(&self, reference: &Reference, layout: &Layout, platforms: &Platforms) -> Result<Pulled, Error> {
        let reference = self.full_name(reference)?;
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            let mut pull = Pull::new(layout, platforms, Extent::Whole);
            peer.pull(&reference.version(), None, &mut pull, INDEX_DEPTH).await
        })
        .await
    }

    /// Fetches only the manifest and configuration of an image, which describe everything but the content of its layers.
    pub async fn describe(&self, reference: &Reference, layout: &Layout, platform: &Platform) -> Result<Pulled, Error> {
        let reference = self.full_name(reference)?;
        let platforms = Platforms::One(platform.clone());
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            let mut pull = Pull::new(layout, &platforms, Extent::Description);
            peer.pull(&reference.version(), None, &mut pull, INDEX_DEPTH).await
        })
        .await
    }

    /// Fetches only the manifests and indexes of an image into a layout. [`Client::pull_blobs`] and [`Client::push_from`]
    /// fetch the rest, or the part of it that the target lacks.
    pub async fn pull_documents(
        &self,
        reference: &Reference,
        layout: &Layout,
        platforms: &Platforms,
    ) -> Result<Pulled, Error> {
        let reference = self.full_name(reference)?;
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            let mut pull = Pull::new(layout, platforms, Extent::Documents);
            peer.pull(&reference.version(), None, &mut pull, INDEX_DEPTH).await
        })
        .await
    }

    /// Fetches the blobs of an image that a layout lacks. Its manifests must be there.
    pub async fn pull_blobs(&self, reference: &Reference, image: &Descriptor, layout: &Layout) -> Result<(), Error> {
        let (_, blobs) = layout.documents_and_blobs(image)?;
        self.pull_some(reference, image, &blobs, layout).await
    }

    /// Fetches some blobs of an image, unless the layout has them.
    pub(super) async fn pull_some(
        &self,
        reference: &Reference,
        image: &Descriptor,
        blobs: &[Descriptor],
        layout: &Layout,
    ) -> Result<(), Error> {
        let reference = self.full_name(reference)?;
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            let mut pull = Pull::new(layout, &Platforms::All, Extent::Whole);
            peer.fetch_blobs(blobs.iter().collect(), image, &mut pull).await
        })
        .await
    }

    /// Does something at the mirrors in their order and at last at the registry itself, until it succeeds.
    async fn try_sources<T>(
        &self,
        reference: &Reference,
        attempt: impl AsyncFn(&Peer<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut sources = self.registries.sources(reference)?;
        let own = sources.pop();
        for mirror in sources {
            let result = match self.peer(&mirror, false).await {
                Ok(peer) => attempt(&peer).await,
                Err(error) => Err(error),
            };
            match result {
                Ok(value) => return Ok(value),
                Err(error) => self
                    .progress
                    .note(&format!("mirror {} skipped: {error}", mirror.registry)),
            }
        }
        let own = own.ok_or_else(|| Error::NotFound {
            registry: reference.name(),
            what: reference.to_string(),
            said: String::new(),
        })?;
        attempt(&self.peer(&own, false).await?).await
    }
}

/// The media type that an index gives to an entry. `None` if it omits it.
fn entry_kind(entry: &Descriptor) -> Option<&str> {
    Some(entry.media_type.as_str()).filter(|kind| !kind.is_empty())
}

impl Peer<'_> {
    /// Pulls the content of a tag or digest. `kind` is the media type that an index gives it.
    async fn pull(
        &self,
        version: &str,
        kind: Option<&str>,
        pull: &mut Pull<'_>,
        depth: usize,
    ) -> Result<Pulled, Error> {
        let (requested, bytes) = self.fetch_manifest(version).await?;
        if let Some(Err(reason)) = kind.map(|kind| check_unambiguous(&bytes, kind)) {
            let what = format!("manifest {} of {}", requested.digest, self.name());
            return Err(crate::Error::Refused { what, reason }.into());
        }
        pull.manifests += 1;
        self.limit("pull", "manifests", pull.manifests, limits::MANIFESTS, &requested)?;
        if is_manifest(&requested.media_type) {
            self.pull_content(&requested, &bytes, pull).await?;
            pull.complete.insert(requested.digest.clone());
            return Ok(Pulled {
                image: requested.clone(),
                requested,
            });
        }
        if !is_index(&requested.media_type) || depth == 0 {
            return Err(refused_manifest(&requested, INDEX_DEPTH - depth).into());
        }
        let index = json::parse::<crate::spec::Index>(&bytes)
            .map_err(crate::Error::document(format!("index {}", requested.digest)))?;
        let image = match pull.platforms {
            Platforms::One(platform) => {
                let chosen = choose_platform(&index, platform, &requested.digest)?;
                let version = chosen.digest.to_string();
                let inner = Box::pin(self.pull(&version, entry_kind(&chosen), pull, depth - 1)).await?;
                Descriptor {
                    platform: chosen.platform,
                    ..inner.image
                }
            }
            Platforms::All => {
                for entry in &index.manifests {
                    if pull.complete.contains(&entry.digest) {
                        continue;
                    }
                    let kind = entry_kind(entry);
                    if kind.is_none_or(|kind| is_manifest(kind) || is_index(kind)) {
                        let version = entry.digest.to_string();
                        Box::pin(self.pull(&version, kind, pull, depth - 1)).await?;
                    } else {
                        self.pull_unknown(entry, &requested, pull).await?;
                    }
                }
                pull.layout.write_document(&requested, &bytes)?;
                pull.complete.insert(requested.digest.clone());
                requested.clone()
            }
        };
        Ok(Pulled { requested, image })
    }

    /// Fetches an entry of an index that is neither image nor index: a manifest of another kind, or a blob, as caches of
    /// builds have them.
    async fn pull_unknown(&self, entry: &Descriptor, index: &Descriptor, pull: &mut Pull<'_>) -> Result<(), Error> {
        if is_document(&entry.media_type) {
            pull.manifests += 1;
            self.limit("pull", "manifests", pull.manifests, limits::MANIFESTS, index)?;
            let accept = format!("{}, */*", entry.media_type);
            let (_, _, bytes) = self.fetch_document(&entry.digest.to_string(), &accept).await?;
            pull.layout.write_document(entry, &bytes)?;
        } else if pull.extent == Extent::Whole {
            self.fetch_blobs(vec![entry], index, pull).await?;
        }
        pull.complete.insert(entry.digest.clone());
        Ok(())
    }

    /// Fetches what a manifest points at, then stores the manifest.
    async fn pull_content(&self, descriptor: &Descriptor, bytes: &[u8], pull: &mut Pull<'_>) -> Result<(), Error> {
        let layout = pull.layout;
        let manifest: Manifest =
            json::parse(bytes).map_err(crate::Error::document(format!("manifest {}", descriptor.digest)))?;
        self.limit("manifest", "layers", manifest.layers.len(), limits::LAYERS, descriptor)?;
        let blobs = match pull.extent {
            // Nondistributable layers stay at their own address.
            Extent::Whole => {
                let layers = manifest.layers.iter().filter(|layer| layer.foreign_url().is_none());
                layers.chain([&manifest.config]).collect()
            }
            Extent::Description => vec![&manifest.config],
            Extent::Documents => Vec::new(),
        };
        self.fetch_blobs(blobs, descriptor, pull).await?;
        Ok(layout.write_document(descriptor, bytes)?)
    }

    /// Fetches the blobs that the layout lacks.
    async fn fetch_blobs(
        &self,
        mut blobs: Vec<&Descriptor>,
        descriptor: &Descriptor,
        pull: &mut Pull<'_>,
    ) -> Result<(), Error> {
        let layout = pull.layout;
        blobs.sort_by(|one, two| one.digest.cmp(&two.digest));
        blobs.dedup_by(|one, two| one.digest == two.digest);
        blobs.retain(|blob| !layout.has_blob(&blob.digest));
        self.make_room(&blobs, descriptor, pull)?;
        stream::iter(blobs)
            .map(|blob| self.pull_blob(blob, layout))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    async fn pull_blob(&self, blob: &Descriptor, layout: &Layout) -> Result<(), Error> {
        let short = blob.digest.hex().get(..12).unwrap_or_default();
        let transfer = self.client.progress.begin(&format!("pull {short}"), blob.size);
        let cache = self.client.options.cache.as_ref();
        if let Some(path) = cache.and_then(|cache| cache.get(&blob.digest)) {
            layout.adopt(&path, &blob.digest)?;
            transfer.finish("from the cache");
            return Ok(());
        }
        if let Some(content) = blob.embedded() {
            layout.write_document(blob, &content)?;
            transfer.finish("in the manifest");
            return Ok(());
        }
        self.fetch_blob(blob, layout, transfer.as_ref()).await?;
        if let Some(cache) = cache
            && let Err(error) = cache.put(&layout.blob_path(&blob.digest), &blob.digest)
        {
            // The image is complete without it.
            self.client
                .progress
                .note(&format!("the content cache cannot be used: {error}"));
        }
        transfer.finish("pulled");
        Ok(())
    }

    /// Checks the sizes that a manifest announces before the first byte is requested.
    fn make_room(&self, blobs: &[&Descriptor], descriptor: &Descriptor, pull: &mut Pull<'_>) -> Result<(), Error> {
        let bytes = blobs.iter().fold(0, |sum: u64, blob| sum.saturating_add(blob.size));
        pull.bytes = pull.bytes.saturating_add(bytes);
        let limit = self.client.options.image_bytes.unwrap_or(limits::IMAGE_BYTES);
        let what = format!("image {} of {}", descriptor.digest, self.name());
        if pull.bytes > limit {
            let reason = format!(
                "with it the pull has {} bytes, at most {limit} are pulled; allow more with --max-image-size",
                pull.bytes
            );
            return Err(Error::from(crate::Error::Refused { what, reason }));
        }
        Ok(crate::space::check(pull.layout.root(), bytes, &what)?)
    }

    fn limit(
        &self,
        kind: &str,
        of_what: &str,
        count: usize,
        limit: usize,
        descriptor: &Descriptor,
    ) -> Result<(), Error> {
        if count <= limit {
            return Ok(());
        }
        Err(Error::from(crate::Error::Refused {
            what: format!("{kind} {} of {}", descriptor.digest, self.name()),
            reason: format!("it has {count} {of_what}, the limit is {limit}"),
        }))
    }
}
