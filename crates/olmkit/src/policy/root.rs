//! The directory to which globs of settings and baselines are relative, so that these mean the same wherever a command
//! runs.

use std::path::{Path, PathBuf, absolute};

/// The directory of a project, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Root(Option<PathBuf>);

impl Root {
    /// The directory at this path, relative to the working directory.
    pub(super) fn new(folder: &Path) -> Self {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        Self(absolute(folder).ok())
    }

    /// The name of a file relative to this directory, with slashes. One outside keeps its name.
    pub(super) fn name(&self, file: &Path) -> String {
        let inside = self.0.as_deref().and_then(|root| {
            let file = absolute(file).ok()?;
            Some(file.strip_prefix(root).ok()?.to_owned())
        });
        let plain = file.strip_prefix(".").unwrap_or(file);
        inside.as_deref().unwrap_or(plain).to_string_lossy().replace('\\', "/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_name_however_it_was_written() {
        let here = std::env::current_dir().unwrap();
        let root = Root::new(Path::new(""));
        for file in [Path::new("a/b.yaml"), Path::new("./a/b.yaml"), &here.join("a/b.yaml")] {
            assert_eq!(root.name(file), "a/b.yaml");
        }
        assert_eq!(root.name(Path::new("/elsewhere/b.yaml")), "/elsewhere/b.yaml");
        let above = Root::new(here.parent().unwrap());
        let name = here.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(above.name(Path::new("b.yaml")), format!("{name}/b.yaml"));
        assert_eq!(Root::default().name(Path::new("./b.yaml")), "b.yaml");
    }
}
