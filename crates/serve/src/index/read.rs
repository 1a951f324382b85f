//! Reading an index.

use prost::Message as _;
use prost::bytes::{Buf as _, Bytes};

use super::Storage;
use super::format::{
    BlobSlot, Broken, Directory, Extent, FORMAT, ListItem, MAGIC, PackageDisplay, PackageSection, PackageSlot,
    TRAILER_LENGTH,
};
use crate::api;

/// Why an index cannot be used. It is then rebuilt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read the index: {0}")]
    Read(#[from] std::io::Error),
    /// The file is not an index, or was written by another version of this program.
    #[error("the file is not an index of this version")]
    Foreign,
    /// The directory is damaged.
    #[error("the index is damaged")]
    Damaged,
    /// The index was built from other content.
    #[error("the index was made from another catalog")]
    Stale,
    /// The index differs from its catalog.
    #[error("the index differs from its catalog; it was modified, or another version of olmkit wrote it")]
    Different,
    /// The index lacks the blobs, which the HTTP API needs.
    #[error("the index was made without the blobs that the HTTP API serves")]
    WithoutBlobs,
}

/// Why a piece of an index cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read the index: {0}")]
    Read(#[from] std::io::Error),
    /// The checksum does not fit the bytes.
    #[error("the index is damaged at offset {0}")]
    Damaged(u64),
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    storage: Storage,
    directory: Directory,
    opened: jiff::Timestamp,
}

impl Index {
    /// Opens an index and checks header and directory.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(storage: Storage) -> Result<Self, OpenError> {
        let total = storage.length()?;
        let Some(end) = total.checked_sub(TRAILER_LENGTH as u64) else {
            return Err(OpenError::Foreign);
        };
        let trailer = storage.read(end, TRAILER_LENGTH)?;
        let mut trailer = trailer.as_slice();
        let (offset, length) = (trailer.get_u64_le(), trailer.get_u64_le());
        let (checksum, format) = (trailer.get_u32_le(), trailer.get_u32_le());
        if trailer != MAGIC || format != FORMAT {
            return Err(OpenError::Foreign);
        }
        // The directory directly precedes the trailer.
        if offset.checked_add(length) != Some(end) {
            return Err(OpenError::Damaged);
        }
        let length = usize::try_from(length).map_err(|_| OpenError::Damaged)?;
        let bytes = storage.read(offset, length)?;
        if crc32fast::hash(&bytes) != checksum {
            return Err(OpenError::Damaged);
        }
        let directory = Directory::decode(bytes.as_slice()).map_err(|_| OpenError::Damaged)?;
        let opened = jiff::Timestamp::now();
        Ok(Index {
            storage,
            directory,
            opened,
        })
    }

    /// Opens an index and checks that it was built from the catalog with this fingerprint.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_for(storage: Storage, fingerprint: &[u8]) -> Result<Self, OpenError> {
        let index = Index::open(storage)?;
        if index.directory.fingerprint == fingerprint {
            Ok(index)
        } else {
            Err(OpenError::Stale)
        }
    }

    /// Fingerprint of the catalog from which the index was built.
    pub fn fingerprint(&self) -> &[u8] {
        &self.directory.fingerprint
    }

    /// Invalid packages of the catalog, which are omitted.
    pub fn broken(&self) -> &[Broken] {
        &self.directory.broken
    }

    /// Returns true if the blobs' sources are in the index.
    pub fn has_blobs(&self) -> bool {
        self.directory.with_blobs
    }

    /// When the index was opened.
    pub fn opened(&self) -> jiff::Timestamp {
        self.opened
    }

    /// Length of all blobs' sources in bytes.
    pub fn blob_bytes(&self) -> u64 {
        self.directory.blob_bytes
    }

    /// Number of blocks of the blobs.
    pub fn blob_blocks(&self) -> usize {
        self.directory.blobs.len()
    }

    /// The blobs of a block, in the catalog's order.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn blobs(&self, block: usize) -> Result<Vec<BlobSlot>, ReadError> {
        let found = self.directory.blobs.get(block);
        found.map_or(Ok(Vec::new()), |extent| self.delimited(*extent))
    }

    /// Packages by name.
    pub fn packages(&self) -> &[PackageSlot] {
        &self.directory.packages
    }

    /// Number of bundles and of channel entries.
    pub fn counts(&self) -> (u64, u64) {
        (self.directory.bundles, self.directory.entries)
    }

    /// The section of a package, if there is such a package.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn package(&self, name: &str) -> Result<Option<PackageSection>, ReadError> {
        self.slot(name).map(|slot| self.section(slot)).transpose()
    }

    fn slot(&self, name: &str) -> Option<&PackageSlot> {
        let slots = &self.directory.packages;
        let at = slots.binary_search_by(|slot| slot.name.as_str().cmp(name)).ok()?;
        slots.get(at)
    }

    /// The answer to `GetPackage`, if there is such a package.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn answer(&self, name: &str) -> Result<Option<api::Package>, ReadError> {
        self.slot(name).map(|slot| self.message(slot.answer)).transpose()
    }

    /// Description and icon of a package.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn display(&self, package: &PackageSection) -> Result<PackageDisplay, ReadError> {
        self.message(package.display)
    }

    fn message<M: prost::Message + Default>(&self, extent: Extent) -> Result<M, ReadError> {
        M::decode(self.piece(extent)?).map_err(|_| ReadError::Damaged(extent.offset))
    }

    /// The section of a package.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn section(&self, slot: &PackageSlot) -> Result<PackageSection, ReadError> {
        self.message(slot.section)
    }

    /// The bytes of a piece, checked.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn piece(&self, extent: Extent) -> Result<Bytes, ReadError> {
        let bytes = self.storage.read(extent.offset, extent.length as usize)?;
        if crc32fast::hash(&bytes) != extent.checksum {
            return Err(ReadError::Damaged(extent.offset));
        }
        Ok(Bytes::from(bytes))
    }

    /// Number of blocks of the list.
    pub fn blocks(&self) -> usize {
        self.directory.list.len()
    }

    /// The items of a block of the list.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn block(&self, number: usize) -> Result<Vec<ListItem>, ReadError> {
        let Some(extent) = self.directory.list.get(number) else {
            return Ok(Vec::new());
        };
        self.delimited(*extent)
    }

    /// The custom blobs of a schema and package.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn customs(&self, schema: &str, package: &str) -> Result<Vec<prost_types::Struct>, ReadError> {
        let slots = &self.directory.customs;
        let found = slots
            .binary_search_by(|slot| (slot.schema.as_str(), slot.package.as_str()).cmp(&(schema, package)))
            .ok()
            .and_then(|at| slots.get(at));
        found.map_or(Ok(Vec::new()), |slot| self.delimited(slot.blobs))
    }

    fn delimited<T: prost::Message + Default>(&self, extent: Extent) -> Result<Vec<T>, ReadError> {
        let mut bytes = self.piece(extent)?;
        let mut items = Vec::new();
        while bytes.has_remaining() {
            items.push(T::decode_length_delimited(&mut bytes).map_err(|_| ReadError::Damaged(extent.offset))?);
        }
        Ok(items)
    }
}
