//! Serves the catalog with the bundle while it is installed.

mod address;
mod host;
pub mod place;
pub mod pod;
pub mod serving;
