//! The sources of a project as modules: changed, declared, deleted.

use std::path::{Path, PathBuf};

use crate::edit::RustFile;
use crate::{Error, Tree};

/// Changes a Rust file of the project.
pub(crate) fn edit(
    tree: &mut Tree,
    path: &str,
    change: impl FnOnce(&mut RustFile<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let place = PathBuf::from(path);
    let mut file = RustFile::new(&place, tree.text(path)?)?;
    change(&mut file)?;
    let text = file.into_text();
    tree.write(path, text);
    Ok(())
}

/// The modules from `src/api` or `src/controller` down to a file, each declared in the one above.
pub(crate) fn declare(tree: &mut Tree, path: &Path) -> Result<(), Error> {
    let mut child = path
        .file_stem()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut folder = path.parent();
    while let Some(here) = folder.filter(|here| *here != Path::new("src") && !here.as_os_str().is_empty()) {
        let file = here.join("mod.rs");
        let text = match tree.has(&file)? {
            true => tree.text(&file)?,
            false => {
                let name = here
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default();
                let what = match () {
                    () if here.starts_with("src/api") => "Kinds",
                    () if here.starts_with("src/webhook") => "Webhooks",
                    () => "Reconcilers",
                };
                format!("//! {what} of `{name}`.\n")
            }
        };
        let mut edited = RustFile::new(&file, text)?;
        edited.add_module(&child)?;
        let text = edited.into_text();
        child = here
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        tree.write(file.clone(), text);
        folder = here.parent();
    }
    Ok(())
}

/// Deletes a source that was written as `text`, and takes its module out.
pub(crate) fn delete(tree: &mut Tree, path: PathBuf, text: &str, force: bool) -> Result<(), Error> {
    unchanged(tree, &path, text, force)?;
    tree.remove(path.clone());
    undeclare(tree, &path)
}

/// Refuses to delete a file that is not what was written.
fn unchanged(tree: &Tree, path: &Path, text: &str, force: bool) -> Result<(), Error> {
    if !force && tree.read(path)?.is_some_and(|known| known != text.as_bytes()) {
        return Err(Error::Usage(format!(
            "{} has changed since it was created; --force deletes it nevertheless",
            path.display()
        )));
    }
    Ok(())
}

/// Takes a file's module out of the one above, and that one too when nothing is left in it.
fn undeclare(tree: &mut Tree, path: &Path) -> Result<(), Error> {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let mut child = name(path).trim_end_matches(".rs").to_owned();
    let mut folder = path.parent();
    while let Some(here) = folder.filter(|here| here.starts_with("src") && *here != Path::new("src")) {
        let file = here.join("mod.rs");
        let Some(text) = tree.read(&file)? else { break };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut source = RustFile::new(&file, text)?;
        source.remove_module(&child)?;
        let text = source.into_text();
        let top = here.parent() == Some(Path::new("src"));
        if top || text.lines().any(|line| !line.starts_with("//!") && !line.is_empty()) {
            tree.write(file.clone(), text);
            break;
        }
        tree.remove(file.clone());
        child = name(here);
        folder = here.parent();
    }
    Ok(())
}
