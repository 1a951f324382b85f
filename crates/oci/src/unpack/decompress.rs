//! From a layer blob to its tar stream, within bounds.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::limits::Limits;
use crate::error::Error;
use crate::layout::{BlobReader, Layout};
use crate::spec::{Descriptor, media_type};

/// A layer's tar stream. After the last entry, [`LayerReader::verify`] checks the blob.
pub(super) struct LayerReader {
    inner: Inner,
    produced: u64,
    allowed: u64,
}

enum Inner {
    Gzip(Box<MultiGzDecoder<BufReader<BlobReader>>>),
    Plain(Box<BlobReader>),
}

impl LayerReader {
    pub(super) fn open(layout: &Layout, layer: &Descriptor, limits: &Limits) -> Result<Self, Error> {
        let blob = layout.open_blob(layer)?;
        let inner = match layer.media_type.as_str() {
            media_type::OCI_LAYER_GZIP | media_type::DOCKER_LAYER_GZIP => {
                Inner::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(64 << 10, blob))))
            }
            media_type::OCI_LAYER | media_type::DOCKER_LAYER => Inner::Plain(Box::new(blob)),
            media_type::OCI_LAYER_ZSTD => {
                return Err(Error::Refused {
                    what: format!("layer {}", layer.digest),
                    reason:
                        "it is compressed with Zstandard, which olmkit does not read; push the image with gzip layers"
                            .to_owned(),
                });
            }
            other => {
                return Err(Error::Refused {
                    what: format!("layer {}", layer.digest),
                    reason: format!("media type {other:?} is not a file system layer"),
                });
            }
        };
        let by_ratio = layer.size.saturating_mul(limits.ratio).max(Limits::RATIO_FREE);
        Ok(Self {
            inner,
            produced: 0,
            allowed: by_ratio.min(limits.layer_bytes),
        })
    }

    /// Reads what is left and checks the blob against its descriptor.
    pub(super) fn verify(mut self) -> Result<(), Error> {
        // What comes after the archive's end is not looked at, but it belongs to the digest.
        let drained = io::copy(&mut self, &mut io::sink());
        let checked = match self.inner {
            Inner::Gzip(decoder) => decoder.into_inner().into_inner().verify(),
            Inner::Plain(blob) => blob.verify(),
        };
        // A wrong digest explains broken compression; the other way round it would not.
        checked?;
        drained.map(|_| ()).map_err(|source| Error::File {
            action: "decompress",
            path: "layer".into(),
            source,
        })
    }
}

impl Read for LayerReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.inner {
            Inner::Gzip(decoder) => decoder.read(buffer)?,
            Inner::Plain(blob) => blob.read(buffer)?,
        };
        self.produced += count as u64;
        if self.produced > self.allowed {
            return Err(io::Error::other(format!(
                "it unpacks to more than {} bytes, refusing a possible decompression bomb",
                self.allowed
            )));
        }
        Ok(count)
    }
}
