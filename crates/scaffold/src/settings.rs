//! Changes of a project's settings: `olmkit edit`.

use std::path::Path;

use crate::project_file::ProjectFile;
use crate::{Error, Report, Tree, modules, record};

/// Settings to change; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edit {
    /// True if groups of new kinds have folders of their own. Files of known kinds stay where they are.
    pub multigroup: Option<bool>,
    /// True if the operator watches only the namespace that it runs in.
    pub namespaced: Option<bool>,
}

/// What `init --namespaced` writes at the end of `package.yaml`.
pub(crate) const INSTALL_MODES: &str =
    "# The operator watches the namespace it runs in.\ninstallModes: [OwnNamespace]\n";

/// What a conversion webhook needs at the end of `package.yaml`.
pub(crate) const ALL_NAMESPACES: &str =
    "# A definition is converted for the whole cluster.\ninstallModes: [AllNamespaces]\n";

/// Changes settings of the project in a folder.
///
/// # Errors
/// When a source lacks the place to change or a file cannot be written. Nothing is written then.
pub fn edit(folder: &Path, changes: Edit) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let before = ProjectFile::of(&tree)?;
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
        let resources = before.resources();
        if let Some(converted) = resources
            .iter()
            .find(|resource| namespaced && resource.webhooks.conversion)
        {
            return Err(Error::Usage(format!(
                "{} {} has a conversion webhook, which OLM refuses for operators that watch only some namespaces; olmkit \
                 delete webhook --conversion deletes it",
                converted.group, converted.kind
            )));
        }
        now.set_flag("namespaced", namespaced);
        modules::edit(&mut tree, "src/packaging.rs", |source| {
            source.set_constant("NAMESPACED", if namespaced { "true" } else { "false" })
        })?;
        match namespaced {
            true => add_install_modes(&mut tree, INSTALL_MODES)?,
            false => remove_install_modes(&mut tree, INSTALL_MODES)?,
        }
    }
    let render = record::finish(&mut tree, Some(&before), now)?;
    Ok(Report {
        render,
        ..tree.commit()?
    })
}

const PACKAGE: &str = "config/package.yaml";

/// Adds install modes, unless somebody has chosen some.
pub(crate) fn add_install_modes(tree: &mut Tree, modes: &str) -> Result<(), Error> {
    let text = tree.text(PACKAGE)?;
    let chosen = text.lines().any(|line| line.starts_with("installModes:"));
    if !chosen {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        tree.write(PACKAGE, format!("{text}{gap}{modes}"));
    }
    Ok(())
}

/// Removes install modes that were added.
pub(crate) fn remove_install_modes(tree: &mut Tree, modes: &str) -> Result<(), Error> {
    let text = tree.text(PACKAGE)?;
    if text.contains(modes) {
        tree.write(PACKAGE, text.replace(modes, ""));
    }
    Ok(())
}
