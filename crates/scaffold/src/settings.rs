//! Changes of a project's settings: `olmkit edit`.

use std::path::Path;

use crate::edit::RustFile;
use crate::{Error, Report, Tree, config, create_api, project_file};

/// Settings to change; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edit {
    /// Whether groups of new kinds have folders of their own. Files of known kinds stay where they are.
    pub multigroup: Option<bool>,
    /// Whether the operator watches only the namespace that it runs in.
    pub namespaced: Option<bool>,
}

/// What `init --namespaced` writes at the end of `package.yaml`.
pub(crate) const INSTALL_MODES: &str =
    "# The operator watches the namespace it runs in.\ninstallModes: [OwnNamespace]\n";

/// Changes settings of the project in a folder.
///
/// # Errors
/// When a source lacks the place to change or a file cannot be written. Nothing is written then.
pub fn edit(folder: &Path, changes: Edit) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let before = create_api::project_file(&tree)?;
    let mut now = before.clone();
    if changes.multigroup == Some(false) {
        let resources = before.resources();
        let mut groups: Vec<&str> = resources.iter().map(|resource| resource.group.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        if groups.len() > 1 {
            return Err(Error::Usage(format!(
                "the project has the groups {}",
                groups.join(", ")
            )));
        }
    }
    if let Some(multigroup) = changes.multigroup {
        now.set_flag("multigroup", multigroup);
    }
    if let Some(namespaced) = changes.namespaced
        && namespaced != before.namespaced()
    {
        now.set_flag("namespaced", namespaced);
        let path = Path::new("src/packaging.rs");
        let mut source = RustFile::new(path, tree.text(path)?)?;
        source.set_constant("NAMESPACED", if namespaced { "true" } else { "false" })?;
        let text = source.into_text();
        tree.write(path, text);
        install_modes(&mut tree, namespaced)?;
    }
    tree.write(project_file::NAME, now.text()?);
    let render = config::update(&mut tree, Some(&before), &now)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

/// Install modes that somebody has chosen stay.
fn install_modes(tree: &mut Tree, namespaced: bool) -> Result<(), Error> {
    let path = "config/package.yaml";
    let text = tree.text(path)?;
    let chosen = text.lines().any(|line| line.starts_with("installModes:"));
    if namespaced && !chosen {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        tree.write(path, format!("{text}{gap}{INSTALL_MODES}"));
    } else if !namespaced && text.contains(INSTALL_MODES) {
        tree.write(path, text.replace(INSTALL_MODES, ""));
    }
    Ok(())
}
