//! The recorded inputs and answers of the Go tools, which are outside the repository.

use std::path::{Path, PathBuf};

/// A file or directory of the recordings, `""` for all of them: in `OLMKIT_CORPUS`, else in `../shared/corpus` relative
/// to the workspace. If it is absent, prints this: the test has nothing to compare with.
pub fn corpus(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("OLMKIT_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
        PathBuf::from,
    );
    let path = root.join(part);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no corpus at {}", path.display());
    None
}
