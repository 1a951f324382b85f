//! The blobs of a catalog as JSON lines, as in catalogd's HTTP API.

use std::io;
use std::sync::Arc;

use prost::bytes::Bytes;

use super::Index;
use super::index::format::BlobSlot;

/// The requested blobs. An empty field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Their schema.
    pub schema: String,
    /// The package that they name. A package blob names none.
    pub package: String,
    /// Their name.
    pub name: String,
}

impl Query {
    /// Reads the query part of a URL.
    ///
    /// # Errors
    /// An unknown parameter.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::default();
        for (key, value) in form_urlencoded::parse(text.as_bytes()) {
            match key.as_ref() {
                "schema" => query.schema = value.into_owned(),
                "package" => query.package = value.into_owned(),
                "name" => query.name = value.into_owned(),
                other => {
                    return Err(format!(
                        "unknown parameter {other:?}: blobs are chosen by schema, package and name"
                    ));
                }
            }
        }
        Ok(query)
    }

    fn takes(&self, slot: &BlobSlot) -> bool {
        let fits = |wanted: &str, has: &str| wanted.is_empty() || wanted == has;
        fits(&self.schema, &slot.schema) && fits(&self.package, &slot.package) && fits(&self.name, &slot.name)
    }
}

/// The blobs that a query selects, in the catalog's order, from one byte to another. Read piece by piece.
pub struct Texts {
    index: Arc<Index>,
    query: Query,
    next_block: usize,
    slots: std::vec::IntoIter<BlobSlot>,
    /// Bytes that are still to be passed over.
    skip: u64,
    /// Bytes not returned yet.
    left: u64,
}

impl Texts {
    /// `length` bytes from `skip` on.
    pub fn new(index: Arc<Index>, query: Query, skip: u64, length: u64) -> Self {
        Texts {
            index,
            query,
            next_block: 0,
            slots: Vec::new().into_iter(),
            skip,
            left: length,
        }
    }

    fn next_slot(&mut self) -> Option<io::Result<BlobSlot>> {
        loop {
            if let Some(slot) = self.slots.next() {
                return Some(Ok(slot));
            }
            if self.next_block >= self.index.blob_blocks() {
                return None;
            }
            match self.index.blobs(self.next_block) {
                Ok(slots) => self.slots = slots.into_iter(),
                Err(error) => return Some(Err(io::Error::other(error))),
            }
            self.next_block += 1;
        }
    }
}

impl Iterator for Texts {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        while self.left > 0 {
            let slot = match self.next_slot()? {
                Ok(slot) => slot,
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            };
            if !self.query.takes(&slot) {
                continue;
            }
            let length = u64::from(slot.json.length);
            if self.skip >= length {
                self.skip -= length;
                continue;
            }
            return Some(match self.index.piece(slot.json) {
                Ok(bytes) => {
                    let start = usize::try_from(std::mem::take(&mut self.skip)).unwrap_or(usize::MAX);
                    let mut bytes = bytes.slice(start.min(bytes.len())..);
                    bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                    self.left -= bytes.len() as u64;
                    Ok(bytes)
                }
                Err(error) => {
                    self.left = 0;
                    Err(io::Error::other(error))
                }
            });
        }
        None
    }
}

/// Compresses a stream.
pub struct Gzip<I> {
    texts: I,
    encoder: Option<flate2::write::GzEncoder<Vec<u8>>>,
}

impl<I> Gzip<I> {
    /// Compresses an iterator of strings.
    pub fn new(texts: I) -> Self {
        let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        Gzip {
            texts,
            encoder: Some(encoder),
        }
    }
}

impl<I: Iterator<Item = io::Result<Bytes>>> Iterator for Gzip<I> {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        use io::Write as _;
        /// Compressed data is sent in pieces of at least this many bytes.
        const PIECE: usize = 16 << 10;

        loop {
            let encoder = self.encoder.as_mut()?;
            match self.texts.next() {
                Some(Ok(bytes)) => {
                    if let Err(error) = encoder.write_all(&bytes) {
                        return Some(Err(error));
                    }
                    if encoder.get_ref().len() >= PIECE {
                        return Some(Ok(std::mem::take(encoder.get_mut()).into()));
                    }
                }
                Some(Err(error)) => {
                    self.encoder = None;
                    return Some(Err(error));
                }
                None => return self.encoder.take().map(|encoder| encoder.finish().map(Bytes::from)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_and_closed() {
        let query = Query::parse("schema=olm.bundle&name=a%2Bb+c").unwrap();
        assert_eq!((query.schema.as_str(), query.name.as_str()), ("olm.bundle", "a+b c"));
        assert!(Query::parse("channel=x").unwrap_err().contains("\"channel\""));
        assert_eq!(Query::parse("").unwrap(), Query::default());
    }
}
