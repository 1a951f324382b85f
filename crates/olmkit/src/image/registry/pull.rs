//! Pulling an image into a layout, from the first mirror that has it.

use futures::stream::{self, StreamExt, TryStreamExt};

use super::error::Error;
use super::transport::Peer;
use super::{Client, Reference};
use crate::image::layout::{Layout, choose_platform, refused_manifest};
use crate::image::spec::{Descriptor, Manifest, Platform, is_index, is_manifest};

/// How many blobs are transferred at the same time.
pub(super) const AT_ONCE: usize = 4;
/// No image has that many layers: engines stop at 127.
const LAYERS_LIMIT: usize = 1000;
const MANIFESTS_LIMIT: usize = 1000;
const INDEX_DEPTH: usize = 4;

/// Which images of an index are pulled.
#[derive(Debug, Clone)]
pub enum Platforms {
    /// All of them.
    All,
    /// The one for a platform.
    One(Platform),
}

/// How much of an image is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Description,
}

/// What a pull brought.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// What the reference stands for: an image, or an index.
    pub requested: Descriptor,
    /// What lies complete in the layout: the same, or the index's image for the chosen platform.
    pub image: Descriptor,
}

impl Client {
    /// The manifest or index that a reference stands for.
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
            peer.pull(&reference.version(), layout, platforms, INDEX_DEPTH, Extent::Whole)
                .await
        })
        .await
    }

    /// Fetches only the manifest and configuration of an image, which tell everything but the content of its layers.
    pub async fn describe(&self, reference: &Reference, layout: &Layout, platform: &Platform) -> Result<Pulled, Error> {
        let reference = self.full_name(reference)?;
        let platforms = Platforms::One(platform.clone());
        self.try_sources(&reference, async |peer: &Peer<'_>| {
            peer.pull(
                &reference.version(),
                layout,
                &platforms,
                INDEX_DEPTH,
                Extent::Description,
            )
            .await
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
                    .note(&format!("mirror {} passed over: {error}", mirror.registry)),
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

impl Peer<'_> {
    async fn pull(
        &self,
        version: &str,
        layout: &Layout,
        platforms: &Platforms,
        depth: usize,
        extent: Extent,
    ) -> Result<Pulled, Error> {
        let (requested, bytes) = self.fetch_manifest(version).await?;
        if is_manifest(&requested.media_type) {
            self.pull_content(&requested, &bytes, layout, extent).await?;
            return Ok(Pulled {
                image: requested.clone(),
                requested,
            });
        }
        if !is_index(&requested.media_type) || depth == 0 {
            return Err(refused_manifest(&requested, INDEX_DEPTH - depth).into());
        }
        let index = serde_json::from_slice::<crate::image::spec::Index>(&bytes)
            .map_err(crate::image::Error::document(format!("index {}", requested.digest)))?;
        let image = match platforms {
            Platforms::One(platform) => {
                let chosen = choose_platform(&index, platform, &requested.digest)?;
                let inner =
                    Box::pin(self.pull(&chosen.digest.to_string(), layout, platforms, depth - 1, extent)).await?;
                Descriptor {
                    platform: chosen.platform,
                    ..inner.image
                }
            }
            Platforms::All => {
                self.limit("index", index.manifests.len(), MANIFESTS_LIMIT, &requested)?;
                for entry in &index.manifests {
                    Box::pin(self.pull(&entry.digest.to_string(), layout, platforms, depth - 1, extent)).await?;
                }
                layout.write_blob(&requested.media_type, &bytes)?;
                requested.clone()
            }
        };
        Ok(Pulled { requested, image })
    }

    /// Fetches what a manifest points at, then stores the manifest.
    async fn pull_content(
        &self,
        descriptor: &Descriptor,
        bytes: &[u8],
        layout: &Layout,
        extent: Extent,
    ) -> Result<(), Error> {
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(crate::image::Error::document(format!("manifest {}", descriptor.digest)))?;
        self.limit("manifest", manifest.layers.len(), LAYERS_LIMIT, descriptor)?;
        let layers = if extent == Extent::Whole {
            manifest.layers.as_slice()
        } else {
            &[]
        };
        let mut blobs: Vec<&Descriptor> = layers.iter().chain([&manifest.config]).collect();
        blobs.sort_by(|one, two| one.digest.cmp(&two.digest));
        blobs.dedup_by(|one, two| one.digest == two.digest);
        stream::iter(blobs)
            .map(|blob| self.pull_blob(blob, layout))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        layout.write_blob(&descriptor.media_type, bytes)?;
        Ok(())
    }

    async fn pull_blob(&self, blob: &Descriptor, layout: &Layout) -> Result<(), Error> {
        if layout.has_blob(&blob.digest) {
            return Ok(());
        }
        let short = blob.digest.hex().get(..12).unwrap_or_default();
        let transfer = self.client.progress.begin(&format!("pull {short}"), blob.size);
        let cache = self.client.options.cache.as_ref();
        if let Some(path) = cache.and_then(|cache| cache.get(&blob.digest)) {
            layout.adopt(&path, &blob.digest)?;
            transfer.finish("from the cache");
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

    fn limit(&self, kind: &str, count: usize, limit: usize, descriptor: &Descriptor) -> Result<(), Error> {
        if count <= limit {
            return Ok(());
        }
        Err(Error::from(crate::image::Error::Refused {
            what: format!("{kind} {} of {}", descriptor.digest, self.name()),
            reason: format!("it points at {count} blobs, at most {limit} are taken"),
        }))
    }
}
