//! The bundle to install.

pub mod facts;
pub mod source;
