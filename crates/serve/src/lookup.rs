//! Takes pieces out of an index, with failures in the API's terms.

use prost::Message as _;
use tonic::Status;

use super::api;
use super::index::format::{EntrySection, Extent, PackageSection};
use super::index::{Index, ReadError};

/// Failures outside the API's contract. opm reports them all as UNKNOWN; so do we.
pub(super) fn unknown(message: impl Into<String>) -> Status {
    Status::unknown(message)
}

pub(super) fn damaged(error: &ReadError) -> Status {
    Status::data_loss(error.to_string())
}

pub(super) fn decode(index: &Index, extent: Extent) -> Result<api::Bundle, Status> {
    let bytes = index.piece(extent).map_err(|error| damaged(&error))?;
    api::Bundle::decode(bytes).map_err(|_| Status::data_loss("the index is damaged"))
}

pub(super) fn name_of<'p>(package: &'p PackageSection, entry: &EntrySection) -> &'p str {
    package
        .bundles
        .get(entry.bundle as usize)
        .map(|bundle| bundle.name.as_str())
        .unwrap_or_default()
}
