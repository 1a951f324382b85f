//! Pushing an image of a layout: blobs first, then what points at them.

use futures::stream::{self, StreamExt, TryStreamExt};

use super::blob::Arrival;
use super::error::Error;
use super::pull::AT_ONCE;
use super::transport::Peer;
use super::{Client, Reference};
use crate::layout::Layout;
use crate::spec::{Descriptor, is_index, is_manifest};

impl Client {
    /// Pushes an image or index. `related` are images that may hold the same blobs; those on the same registry are
    /// asked to lend them, so that they need not travel again.
    pub async fn push(
        &self,
        layout: &Layout,
        image: &Descriptor,
        reference: &Reference,
        related: &[Reference],
    ) -> Result<(), Error> {
        let reference = self.full_name(reference)?;
        let target = self.registries.target(&reference)?;
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
        let all = layout.reachable(image)?;
        let (documents, blobs): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|blob| is_manifest(&blob.media_type) || is_index(&blob.media_type));
        stream::iter(&blobs)
            .map(|blob| peer.push_one(blob, layout))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        // `reachable` lists what is pointed at before what points; the image itself comes last.
        for document in documents {
            let bytes = layout.read_document(&document)?;
            let version = if document.digest == image.digest {
                reference.version()
            } else {
                document.digest.to_string()
            };
            peer.put_manifest(&version, &document.media_type, &bytes).await?;
        }
        Ok(())
    }
}

impl Peer<'_> {
    async fn push_one(&self, blob: &Descriptor, layout: &Layout) -> Result<(), Error> {
        let short = blob.digest.hex().get(..12).unwrap_or_default();
        let transfer = self.client.progress.begin(&format!("push {short}"), blob.size);
        let how = match self.push_blob(blob, layout, transfer.as_ref()).await? {
            Arrival::Existed => "already there",
            Arrival::Mounted => "lent by another repository",
            Arrival::Uploaded => "pushed",
        };
        transfer.finish(how);
        Ok(())
    }
}
