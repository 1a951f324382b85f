//! The end of every command: `config/`, the hashes of generated files, PROJECT.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::project_file::{self, ProjectFile};
use crate::{Error, Tree, config};

/// Renders `config/`, keeps the hashes of the files that the changes generate, and writes PROJECT. Returns whether
/// `make manifests` has to render `config/`.
pub fn finish(tree: &mut Tree, before: Option<&ProjectFile>, mut now: ProjectFile) -> Result<bool, Error> {
    hashes(tree, &mut now)?;
    let render = config::update(tree, before, &now)?;
    tree.write(project_file::NAME, now.text()?);
    Ok(render)
}

/// A file that the author has changed keeps the hash of what was generated, so it counts as changed from then on.
fn hashes(tree: &Tree, now: &mut ProjectFile) -> Result<(), Error> {
    let disk = Tree::at(tree.root());
    for (path, content) in tree.all() {
        let Some(name) = path.to_str().filter(|_| is_tracked(path)) else {
            continue;
        };
        let Some(content) = content else {
            now.set_hash(name, None);
            continue;
        };
        let untouched = match disk.read(path)? {
            None => true,
            Some(known) => now.hash(name).is_some_and(|stored| stored == hash(&known)),
        };
        if untouched {
            now.set_hash(name, Some(hash(content)));
        }
    }
    Ok(())
}

/// Returns true if a generated file may be edited: all but PROJECT and what `make manifests` renders.
pub fn is_tracked(path: &Path) -> bool {
    path != Path::new(project_file::NAME) && !path.starts_with(config::FOLDER)
}

/// Enough of SHA-256 to notice a change.
pub fn hash(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
