//! The server over real connections, and bodies that come in pieces.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod bodies;
mod listener;
