//! Changes of a project's settings: `olmkit edit`.

use std::path::Path;

use crate::project_file::ProjectFile;
use crate::{Error, Report, Tree, modules, record};

/// Settings to change. `None` keeps a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edit {
    /// True if each group of new kinds has a directory. Files of existing kinds are not moved.
    pub multigroup: Option<bool>,
    /// True if the operator watches only the namespace that it runs in.
    pub namespaced: Option<bool>,
}

/// The end of `package.yaml` that `init --namespaced` writes.
pub(crate) const INSTALL_MODES: &str =
    "# The operator watches the namespace it runs in.\ninstallModes: [OwnNamespace]\n";

/// The end of `package.yaml` that a conversion webhook needs.
pub(crate) const ALL_NAMESPACES: &str =
    "# A definition is converted for the whole cluster.\ninstallModes: [AllNamespaces]\n";

/// Changes settings of the project in a directory.
///
/// # Errors
/// When a source lacks the place to change or a file cannot be written. Nothing is written then.
pub fn edit(folder: &Path, changes: Edit) -> Result<Report, Error> {
    let mut tree = Tree::at(folder);
    let before = ProjectFile::read(&tree)?;
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
                "{} {} has a conversion webhook, which OLM rejects for operators that watch only some namespaces; olmkit \
                 delete webhook --conversion deletes it",
                converted.group, converted.kind
            )));
        }
        now.set_namespaced(namespaced);
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

/// Adds install modes, unless the file already has some.
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
