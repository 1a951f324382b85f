//! Where the files of a repository are: in a folder, in a commit, or in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use olmkit::bundle::load::{Limits, Tree};
use olmkit::limits::{self, Limit};

/// Read access to the files of a repository. Paths are relative to its root, with `/`; the root is the empty path.
pub trait Files: Send + Sync {
    /// Whether the path is a file.
    fn is_file(&self, path: &str) -> bool;
    /// Whether the path is a folder.
    fn is_directory(&self, path: &str) -> bool;
    /// The names in a folder, sorted; empty if there is none.
    fn list(&self, path: &str) -> Vec<String>;
    /// The content of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than the limit.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// A folder as a bundle.
    ///
    /// # Errors
    /// It cannot be read, or holds more than a bundle may.
    fn bundle(&self, path: &str) -> io::Result<Tree> {
        let mut files = Vec::new();
        let mut folders = vec![String::new()];
        let (mut count, mut left) = (0, limits::BUNDLE_BYTES.get());
        while let Some(folder) = folders.pop() {
            if folder.split('/').count() > limits::BUNDLE_DEPTH.count() {
                return Err(limits::BUNDLE_DEPTH.exceeded());
            }
            for name in self.list(&join(path, &folder)) {
                count += 1;
                if count > limits::BUNDLE_FILES.count() {
                    return Err(limits::BUNDLE_FILES.exceeded());
                }
                let inside = join(&folder, &name);
                let whole = join(path, &inside);
                if self.is_directory(&whole) {
                    folders.push(inside);
                } else if self.is_file(&whole) {
                    let content = self.read(&whole)?;
                    left = u64::try_from(content.len())
                        .ok()
                        .and_then(|size| left.checked_sub(size))
                        .ok_or_else(|| limits::BUNDLE_BYTES.exceeded())?;
                    files.push((inside, content));
                }
            }
        }
        Ok(Tree::from_files(files))
    }
}

/// What a file may hold: a catalog is large, a file of a bundle is part of one, and the rest are settings.
pub(crate) fn limit(path: &str) -> &'static Limit {
    let parts: Vec<&str> = path.splitn(4, '/').collect();
    match parts.as_slice() {
        ["catalogs", ..] => &limits::CATALOG_FILE,
        ["operators", _, "catalog-templates", _] => &limits::TEMPLATE,
        ["operators", _, _, "release-config.yaml" | "release-config.yml"] => &limits::SETTINGS_FILE,
        ["operators", _, _, _] => &limits::BUNDLE_BYTES,
        _ => &limits::SETTINGS_FILE,
    }
}

/// Two parts of a path.
pub(crate) fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", _) => name.to_owned(),
        (_, "") => folder.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// A folder on disk. Symbolic links that lead out of it are absent: a repository may come from a stranger.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    real: PathBuf,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// It does not exist.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: root.to_path_buf(),
            real: root.canonicalize()?,
        })
    }

    fn inside(&self, path: &str) -> Option<PathBuf> {
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        let whole = self.root.join(path);
        let real = whole.canonicalize().ok()?;
        real.starts_with(&self.real).then_some(real)
    }
}

impl Files for Folder {
    fn is_file(&self, path: &str) -> bool {
        self.inside(path).is_some_and(|path| path.is_file())
    }

    fn is_directory(&self, path: &str) -> bool {
        self.inside(path).is_some_and(|path| path.is_dir())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let Some(Ok(entries)) = self.inside(path).map(std::fs::read_dir) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn bundle(&self, path: &str) -> io::Result<Tree> {
        let inside = self.inside(path).ok_or(io::ErrorKind::NotFound)?;
        Tree::from_dir(&inside, Limits::default()).map_err(io::Error::other)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let inside = self
            .inside(path)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file in the repository"))?;
        limits::read_file(&inside, limit(path))
    }
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<String, Vec<u8>>,
}

impl<P: Into<String>, B: Into<Vec<u8>>> FromIterator<(P, B)> for Memory {
    fn from_iter<T: IntoIterator<Item = (P, B)>>(files: T) -> Self {
        Self {
            files: files
                .into_iter()
                .map(|(path, bytes)| (path.into(), bytes.into()))
                .collect(),
        }
    }
}

impl Files for Memory {
    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        is_directory(&self.files, path)
    }

    fn list(&self, path: &str) -> Vec<String> {
        list(&self.files, path)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files
            .get(path)
            .cloned()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Whether some path of a table lies below a folder.
pub(crate) fn is_directory<T>(files: &BTreeMap<String, T>, path: &str) -> bool {
    if path.is_empty() {
        return true;
    }
    let prefix = format!("{path}/");
    let mut after = files.range(prefix.clone()..);
    after.next().is_some_and(|(name, _)| name.starts_with(&prefix))
}

/// The names in a folder of a table of paths.
pub(crate) fn list<T>(files: &BTreeMap<String, T>, path: &str) -> Vec<String> {
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("{path}/")
    };
    let mut names: Vec<String> = Vec::new();
    for (name, _) in files.range(prefix.clone()..) {
        let Some(rest) = name.strip_prefix(&prefix) else { break };
        let first = rest.split('/').next().unwrap_or_default();
        if names.last().is_none_or(|last| last != first) {
            names.push(first.to_owned());
        }
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_has_the_limit_that_fits() {
        for (path, name) in [
            ("config.yaml", "settings-file"),
            ("operators/hello/ci.yaml", "settings-file"),
            ("operators/hello/0.0.1/release-config.yaml", "settings-file"),
            (
                "operators/hello/0.0.1/manifests/a.clusterserviceversion.yaml",
                "bundle-bytes",
            ),
            ("operators/hello/catalog-templates/v4.20.yaml", "template"),
            ("catalogs/v4.20/hello/catalog.yaml", "catalog-file"),
        ] {
            assert_eq!(limit(path).name, name, "{path}");
        }
    }

    #[test]
    fn a_large_file_of_settings_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = std::fs::File::create(folder.path().join("config.yaml")).expect("a file");
        file.set_len(limits::SETTINGS_FILE.get() + 1)
            .expect("a hole takes no space");
        let files = Folder::open(folder.path()).expect("it is there");
        let error = files.read("config.yaml").expect_err("it is too large");
        assert!(error.to_string().contains("--limit settings-file"), "{error}");
    }

    #[test]
    fn a_bundle_in_memory_is_bounded_like_one_on_disk() {
        let many = (0..=limits::BUNDLE_FILES.count()).map(|number| (format!("b/{number}"), ""));
        let deep = format!("b/{}x", "d/".repeat(limits::BUNDLE_DEPTH.count() + 1));
        for files in [many.collect::<Memory>(), [(deep, "")].into_iter().collect()] {
            assert!(
                files
                    .bundle("b")
                    .is_err_and(|error| error.to_string().contains("--limit bundle-"))
            );
        }
        let fine: Memory = [("b/manifests/x", "x")].into_iter().collect();
        assert!(fine.bundle("b").is_ok());
    }
}
