//! Paths in messages.

use std::path::Path;

use olmkit_go::filepath::{clean, rel};

/// A path relative to the working directory, as operator-sdk prints a bundle directory regardless of how it was given.
pub fn relative_to_working_directory(path: &Path) -> String {
    let Ok(here) = std::env::current_dir() else {
        return clean(&path.to_string_lossy());
    };
    rel(&here.to_string_lossy(), &here.join(path).to_string_lossy())
}
