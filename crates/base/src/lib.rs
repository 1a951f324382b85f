//! The ground that the crates of olmkit share: Kubernetes objects and their formats, size limits of readers, files that are
//! written whole or not at all, temporary directories that do not outlive the program, and external programs.

pub mod files;
pub mod git;
pub mod limits;
pub mod object;
pub mod process;
pub mod temporary;
