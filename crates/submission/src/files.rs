//! The files of a repository: in a directory, in a commit, or in memory.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::path::Path;

use olmkit::bundle::load::{Limits, Tree};
use olmkit::files::{Directory, leads_out};
use olmkit::limits::{self, Limit};

/// Read access to the files of a repository. Paths are relative to its root, with `/`. The root is the empty path.
pub trait Files: Send + Sync {
    /// Returns true if the path is a file.
    fn is_file(&self, path: &str) -> bool;
    /// Returns true if the path is a directory.
    fn is_directory(&self, path: &str) -> bool;
    /// The names in a directory, sorted. Empty if it does not exist.
    fn list(&self, path: &str) -> Vec<String>;
    /// The content of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is larger than the limit.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// A directory as a bundle.
    ///
    /// # Errors
    /// It cannot be read, or exceeds the limits of a bundle.
    fn bundle(&self, path: &str) -> io::Result<Tree> {
        let mut files = Vec::new();
        let mut folders = vec![String::new()];
        let (mut count, mut left) = (0, limits::BUNDLE_BYTES.get());
        while let Some(directory) = folders.pop() {
            if directory.split('/').count() > limits::BUNDLE_DEPTH.count() {
                return Err(limits::BUNDLE_DEPTH.exceeded());
            }
            for name in self.list(&join(path, &directory)) {
                count += 1;
                if count > limits::BUNDLE_FILES.count() {
                    return Err(limits::BUNDLE_FILES.exceeded());
                }
                let inside = join(&directory, &name);
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

/// The size limit of a file: for a catalog, a file of a bundle, or settings.
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
pub(crate) fn join(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", _) => name.to_owned(),
        (_, "") => directory.to_owned(),
        _ => format!("{directory}/{name}"),
    }
}

/// A directory on disk. A symbolic link to a path outside it is an error when it is read: the repository may come from
/// an untrusted author.
#[derive(Debug)]
pub struct Folder {
    root: Directory,
}

impl Folder {
    /// Opens a directory.
    ///
    /// # Errors
    /// It does not exist.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: Directory::open(root)?,
        })
    }

    fn is(&self, path: &str, kind: fn(&Metadata) -> bool) -> bool {
        self.root
            .metadata(Path::new(path))
            .is_ok_and(|metadata| kind(&metadata))
    }
}

impl Files for Folder {
    /// A link that leads out counts as a file, so that its reader reports it.
    fn is_file(&self, path: &str) -> bool {
        match self.root.metadata(Path::new(path)) {
            Ok(metadata) => metadata.is_file(),
            Err(error) => leads_out(&error) && !path.split('/').any(|part| part == ".."),
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        self.is(path, Metadata::is_dir)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let names = self.root.names(Path::new(path)).unwrap_or_default();
        names.into_iter().filter_map(|name| name.into_string().ok()).collect()
    }

    fn bundle(&self, path: &str) -> io::Result<Tree> {
        Tree::below(&self.root, Path::new(path), Limits::default()).map_err(io::Error::other)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.root
            .read(Path::new(path), limit(path))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::NotFound, "no such file in the repository"),
                _ => error,
            })
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

/// Returns true if some path of a table is below a directory.
pub(crate) fn is_directory<T>(files: &BTreeMap<String, T>, path: &str) -> bool {
    if path.is_empty() {
        return true;
    }
    let prefix = format!("{path}/");
    let mut after = files.range(prefix.clone()..);
    after.next().is_some_and(|(name, _)| name.starts_with(&prefix))
}

/// The names in a directory of a table of paths.
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
        let directory = tempfile::tempdir().expect("temporary directory");
        let file = std::fs::File::create(directory.path().join("config.yaml")).expect("a file");
        file.set_len(limits::SETTINGS_FILE.get() + 1)
            .expect("a hole takes no space");
        let files = Folder::open(directory.path()).expect("it is there");
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
