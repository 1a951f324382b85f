//! From a layer blob to its tar stream, within bounds.

use std::io::{self, BufReader, Read};

use super::limits::Limits;
use crate::compression::Decoder;
use crate::error::Error;
use crate::layout::{BlobReader, Image, Layout};
use crate::spec::{Descriptor, is_layer};

/// The bytes to which the layers of an image may decompress together.
pub(crate) struct Budget {
    allowed: u64,
    left: u64,
}

impl Budget {
    /// The budget of layers that have this size before decompression.
    pub(crate) fn new(size: u64, limits: &Limits) -> Self {
        let allowed = limits.unpacked_image(size);
        Self { allowed, left: allowed }
    }

    /// The budget of an image in a layout. If the layout is from an archive, the archive may be compressed as a whole.
    pub(crate) fn of_image(layout: &Layout, image: &Image, limits: &Limits) -> Self {
        let size = total_size(&image.manifest.layers);
        Self::new(layout.archive_bytes().map_or(size, |archive| size.min(archive)), limits)
    }
}

/// The bytes of all layers before decompression.
pub(crate) fn total_size(layers: &[Descriptor]) -> u64 {
    layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.size))
}

/// A layer's tar stream. After the last entry, [`LayerReader::verify`] checks the blob.
pub(crate) struct LayerReader<'b> {
    inner: Decoder<BufReader<BlobReader>>,
    produced: u64,
    allowed: u64,
    budget: &'b mut Budget,
}

impl<'b> LayerReader<'b> {
    pub(crate) fn open(
        layout: &Layout,
        layer: &Descriptor,
        limits: &Limits,
        budget: &'b mut Budget,
    ) -> Result<Self, Error> {
        let what = || format!("layer {}", layer.digest);
        if !is_layer(&layer.media_type) {
            return Err(Error::Refused {
                what: what(),
                reason: format!("media type {:?} is not a file system layer", layer.media_type),
            });
        }
        if let Some(url) = layer.foreign_url().filter(|_| !layout.has_blob(&layer.digest)) {
            return Err(Error::Refused {
                what: what(),
                reason: format!("it is nondistributable and not part of the image; its files are at {url}"),
            });
        }
        let blob = layout.open_blob(layer)?;
        let inner = Decoder::new(BufReader::with_capacity(64 << 10, blob)).map_err(|error| Error::Refused {
            what: what(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            inner,
            produced: 0,
            allowed: limits.unpacked_layer(layer.size),
            budget,
        })
    }

    /// Reads what is left and checks the blob against its descriptor.
    pub(crate) fn verify(mut self) -> Result<(), Error> {
        // Data after the archive's end is ignored, but the digest covers it.
        let drained = io::copy(&mut self, &mut io::sink());
        // A wrong digest explains broken compression. The other way round it would not.
        self.inner.into_inner().into_inner().verify()?;
        drained.map(|_| ()).map_err(|source| Error::File {
            action: "decompress",
            path: "layer".into(),
            source,
        })
    }
}

impl Read for LayerReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.produced += count as u64;
        if self.produced > self.allowed {
            return Err(io::Error::other(format!(
                "it unpacks to more than {} bytes, refusing a possible decompression bomb",
                self.allowed
            )));
        }
        let Some(left) = self.budget.left.checked_sub(count as u64) else {
            return Err(io::Error::other(format!(
                "with the other layers, it unpacks to more than {} bytes, refusing a possible decompression bomb",
                self.budget.allowed
            )));
        };
        self.budget.left = left;
        Ok(count)
    }
}
