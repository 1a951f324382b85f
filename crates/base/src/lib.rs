//! The ground that the crates of olmkit share: Kubernetes objects and their formats, size limits of readers, files that are
//! written whole or not at all, and temporary directories that do not outlive the program.

pub mod files;
pub mod limits;
pub mod object;
pub mod temporary;
