//! Pushing an image of a layout: blobs first, then what points at them.

use futures::stream::{self, StreamExt, TryStreamExt};
use olmkit::object::UntrustedText;

use super::error::Error;
use super::peer::Peer;
use super::progress::Transfer;
use super::pull::AT_ONCE;
use super::{Client, Reference};
use crate::digest::Algorithm;
use crate::layout::Layout;
use crate::spec::Descriptor;

impl Client {
    /// Pushes an image or index. `related` are images that may hold the same blobs. Those on the same registry are
    /// asked to lend them, so that they need not travel again.
    pub async fn push(
        &self,
        layout: &Layout,
        image: &Descriptor,
        reference: &Reference,
        related: &[Reference],
    ) -> Result<(), Error> {
        let reference = self.full_name(reference)?;
        layout.check_digest(image, &reference)?;
        let peer = self.pushing(&reference, related).await?;
        self.note_foreign_layers(layout, image)?;
        let (documents, blobs) = layout.documents_and_blobs(image)?;
        stream::iter(&blobs)
            .map(|blob| peer.push_one(blob, layout))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        peer.put_documents(layout, image, &reference, documents).await
    }

    /// Pushes an image of another registry whose manifests are in a layout. Of its blobs, only those that the target
    /// neither has nor can mount from the source are fetched from there.
    pub async fn push_from(
        &self,
        source: &Reference,
        layout: &Layout,
        image: &Descriptor,
        reference: &Reference,
    ) -> Result<(), Error> {
        let source = self.full_name(source)?;
        let reference = self.full_name(reference)?;
        layout.check_digest(image, &reference)?;
        let peer = self.pushing(&reference, std::slice::from_ref(&source)).await?;
        self.note_foreign_layers(layout, image)?;
        let (documents, blobs) = layout.documents_and_blobs(image)?;
        let missing: Vec<Descriptor> = stream::iter(blobs)
            .map(|blob| peer.unless_there(blob))
            .buffer_unordered(AT_ONCE)
            .try_filter_map(async |missing| Ok(missing))
            .try_collect()
            .await?;
        if !missing.is_empty() {
            self.pull_some(&source, image, &missing, layout).await?;
        }
        stream::iter(&missing)
            .map(|blob| peer.upload_one(blob, layout))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        peer.put_documents(layout, image, &reference, documents).await
    }

    /// Reports the layers that stay where they are.
    pub(crate) fn note_foreign_layers(&self, layout: &Layout, image: &Descriptor) -> Result<(), Error> {
        for layer in layout.foreign_layers(image)? {
            let url = UntrustedText::new(layer.foreign_url().unwrap_or_default());
            self.progress.note(&format!(
                "layer {} is nondistributable and stays at {url}",
                layer.digest
            ));
        }
        Ok(())
    }

    /// Reports that an image gets other media types.
    pub(crate) fn note_conversion(&self, target: impl std::fmt::Display) {
        self.progress.note(&format!(
            "{target} does not accept Docker's media types; the image gets those of OCI"
        ));
    }

    /// The repository to push to, with those on the same registry that may lend blobs.
    async fn pushing(&self, reference: &Reference, related: &[Reference]) -> Result<Peer<'_>, Error> {
        let target = self.registries.target(reference)?;
        let mut peer = self.peer(&target, true).await?;
        for other in related {
            if let Ok(other) = self.registries.target(other)
                && other.registry == target.registry
                && other.repository != target.repository
                && !peer.mount_from.contains(&other.repository)
            {
                peer.mount_from.push(other.repository);
            }
        }
        Ok(peer)
    }
}

impl Peer<'_> {
    async fn put_documents(
        &self,
        layout: &Layout,
        image: &Descriptor,
        reference: &Reference,
        documents: Vec<Descriptor>,
    ) -> Result<(), Error> {
        // Each document comes after everything that it points at. The image itself comes last.
        for document in documents {
            let bytes = layout.read_document(&document)?;
            let digest = document.digest.to_string();
            if document.digest != image.digest {
                self.put_document(&digest, &document, &bytes).await?;
                continue;
            }
            // A registry names what has a tag by its SHA-256 digest only.
            let is_usual = image.digest.algorithm() == Algorithm::Sha256;
            let tag = match (reference.tag(), reference.digest()) {
                (None, None) => Some("latest"),
                (tag, _) => tag,
            };
            if tag.is_none() || !is_usual && reference.digest().is_some() {
                let pinned = reference.digest().map_or(digest, ToString::to_string);
                self.put_document(&pinned, &document, &bytes).await?;
            }
            if let Some(tag) = tag {
                self.put_document(tag, &document, &bytes).await?;
            }
        }
        Ok(())
    }

    /// The blob, unless the repository has it or can mount it.
    async fn unless_there(&self, blob: Descriptor) -> Result<Option<Descriptor>, Error> {
        Ok(match self.find_blob(&blob).await? {
            Some(arrival) => {
                self.begin(&blob).finish(arrival.describe());
                None
            }
            None => Some(blob),
        })
    }

    async fn push_one(&self, blob: &Descriptor, layout: &Layout) -> Result<(), Error> {
        match self.find_blob(blob).await? {
            Some(arrival) => {
                self.begin(blob).finish(arrival.describe());
                Ok(())
            }
            None => self.upload_one(blob, layout).await,
        }
    }

    async fn upload_one(&self, blob: &Descriptor, layout: &Layout) -> Result<(), Error> {
        let transfer = self.begin(blob);
        self.upload_blob(blob, layout, transfer.as_ref()).await?;
        transfer.finish("pushed");
        Ok(())
    }

    fn begin(&self, blob: &Descriptor) -> Box<dyn Transfer> {
        let short = blob.digest.hex().get(..12).unwrap_or_default();
        self.client.progress.begin(&format!("push {short}"), blob.size)
    }
}
