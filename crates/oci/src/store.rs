//! The store: where built images wait for being pushed, one OCI layout for each user.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::Reference;
use super::error::Error;
use super::layout::{Layout, Pruned, REFERENCE_NAME};
use super::spec::Descriptor;

/// The layout that `image build` fills and `image push` reads. It is locked while it is open: for itself alone by who
/// writes, together with others by who reads.
pub struct Store {
    layout: Layout,
    // Keeps the lock until the store is dropped.
    _lock: File,
}

impl Store {
    /// Directory of the store: `OLMKIT_IMAGE_STORE`, else `olmkit/images` in the user's data directory
    /// (`XDG_DATA_HOME`, `~/.local/share`).
    pub fn default_path() -> Result<PathBuf, Error> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        variable("OLMKIT_IMAGE_STORE")
            .or_else(|| variable("XDG_DATA_HOME").map(|path| path.join("olmkit/images")))
            .or_else(|| variable("HOME").map(|path| path.join(".local/share/olmkit/images")))
            .ok_or_else(|| Error::Input("no directory for built images: set OLMKIT_IMAGE_STORE or HOME".to_owned()))
    }

    /// Opens the store for writing, waiting for others to finish.
    pub fn write(path: &Path) -> Result<Self, Error> {
        let lock = Self::lock_file(path)?;
        lock.lock().map_err(Error::file("lock", path))?;
        Ok(Self {
            layout: Layout::create(path)?,
            _lock: lock,
        })
    }

    /// Opens the store for reading, waiting for a writer to finish.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if !path.join("index.json").exists() {
            // An empty store is nothing to complain about; what is missing in it is said later, by name.
            drop(Self::write(path)?);
        }
        let lock = Self::lock_file(path)?;
        lock.lock_shared().map_err(Error::file("lock", path))?;
        Ok(Self {
            layout: Layout::open(path)?,
            _lock: lock,
        })
    }

    fn lock_file(path: &Path) -> Result<File, Error> {
        std::fs::create_dir_all(path).map_err(Error::file("create", path))?;
        let path = path.join(".lock");
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(Error::file("open", &path))
    }

    /// The name of an image in the store. A tag is enough. If the reference also has a digest, it only selects the image for the tag.
    pub fn name(reference: &Reference) -> String {
        let reference = reference.with_default_tag();
        match reference.tag() {
            Some(tag) => format!("{}:{tag}", reference.name()),
            None => reference.to_string(),
        }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Names an image and frees what it replaced.
    pub fn set(&self, reference: &Reference, descriptor: &Descriptor) -> Result<Pruned, Error> {
        self.layout.set(&Self::name(reference), descriptor)?;
        self.layout.prune()
    }

    /// The names of all images.
    pub fn references(&self) -> Result<Vec<Reference>, Error> {
        let index = self.layout.index()?;
        let names = index
            .manifests
            .iter()
            .filter_map(|entry| entry.annotations.get(REFERENCE_NAME));
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// The image of a name.
    pub fn find(&self, reference: &Reference) -> Result<Descriptor, Error> {
        let name = Self::name(reference);
        let found = self.layout.find(Some(&name)).and_then(|found| {
            let is_right = self.layout.check_digest(&found, reference).is_ok();
            is_right.then(|| found.clone()).ok_or_else(|| Error::Missing {
                what: format!("image {reference}"),
                place: String::new(),
                hint: format!(" (the digest of {name} is {})", found.digest),
            })
        });
        found.map_err(|error| match error {
            Error::Missing { what, hint, .. } => Error::Missing {
                what,
                place: format!("the image store {}", self.layout.root().display()),
                hint: format!("{hint}; build it first, with `olmkit image build … --tag {name}`"),
            },
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_with_a_digest_is_found_by_its_tag() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::write(folder.path()).unwrap();
        let image = store.layout().write_blob("text/plain", b"x").unwrap();
        let parse = |text: &str| text.parse::<Reference>().unwrap();
        store
            .set(&parse(&format!("a.io/b:v1@{}", image.digest)), &image)
            .unwrap();
        assert_eq!(store.references().unwrap(), [parse("a.io/b:v1")]);
        for name in ["a.io/b:v1".to_owned(), format!("a.io/b:v1@{}", image.digest)] {
            assert_eq!(store.find(&parse(&name)).unwrap().digest, image.digest);
        }
        let other = crate::digest::sha256(b"y");
        assert!(store.find(&parse(&format!("a.io/b:v1@{other}"))).is_err());
        store.set(&parse(&format!("a.io/c@{}", image.digest)), &image).unwrap();
        assert!(store.find(&parse(&format!("a.io/c@{}", image.digest))).is_ok());
    }
}
