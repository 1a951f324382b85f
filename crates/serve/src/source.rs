//! From a catalog directory to an index: the one that was prepared, if it fits, else a new one.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

pub use super::assemble::Error;
use super::assemble::{IndexContents, build};
use super::fingerprint;
use super::index::{self, Index, Storage};
use super::trusted;
use olmkit::temporary::{self, Durability};

/// Name of the index file in a cache directory. It includes the format, so that versions of olmkit can share a
/// directory, and opm's caches are not touched.
pub const INDEX_FILE: &str = "olmkit-2.index";

/// Contents and location of the index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'p> {
    /// The cache directory.
    pub cache: Option<&'p Path>,
    /// Use the prepared index or fail.
    pub enforce: bool,
    /// Contents of the index.
    pub wanted: IndexContents,
}

/// Origin of an index.
#[derive(Debug)]
pub enum Provenance {
    /// The prepared one fits.
    Prepared,
    /// Built and kept in the cache directory.
    Built,
    /// Built in memory or a temporary file: why it could not be kept, if it should have been.
    Temporary(Option<String>),
}

/// The index in the cache directory, if it was made from exactly this catalog. It answers calls immediately, while an
/// index with the blobs is being built.
///
/// # Errors
/// The catalog cannot be read.
pub fn prepared_without_blobs(root: &Path, options: Options<'_>) -> Result<Option<Index>, Error> {
    let Some(cache) = options.cache.filter(|_| options.wanted.blobs && !options.enforce) else {
        return Ok(None);
    };
    let wanted = IndexContents {
        blobs: false,
        ..options.wanted
    };
    let found = prepared(cache, &fingerprint::remembered(root, cache)?, wanted).ok();
    Ok(found.filter(|index| !index.has_blobs()))
}

/// Opens the index in the cache directory if it was made from exactly this catalog and has the requested contents.
/// Otherwise builds one. A cache that is missing, stale, damaged, owned by another user or not writable is an error
/// only if it is enforced.
///
/// # Errors
/// The catalog cannot be read, no package is valid, or `whole` is set and a package is invalid.
pub fn index(root: &Path, options: Options<'_>) -> Result<(Index, Provenance), Error> {
    let Options { cache, enforce, wanted } = options;
    let fingerprint = match cache {
        // Enforcing integrity means reading every byte.
        Some(cache) if !enforce => fingerprint::remembered(root, cache)?,
        _ => fingerprint::compute(root)?,
    };
    if let Some(cache) = cache {
        match prepared(cache, &fingerprint, wanted) {
            Ok(index) if enforce => {
                verify(root, cache, &fingerprint, wanted, &index)?;
                return Ok((index, Provenance::Prepared));
            }
            Ok(index) => return Ok((index, Provenance::Prepared)),
            Err(error) if enforce => return Err(Error::Enforced(error)),
            Err(_) => {}
        }
    }
    let mut reason = None;
    if let Some(cache) = cache {
        match keep(root, cache, &fingerprint, wanted) {
            Ok(index) => return Ok((index, Provenance::Built)),
            Err(Error::Build(index::BuildError::Write(error))) => reason = Some(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    // No cache directory: an unnamed temporary file, or memory if there is no directory for it or it is full.
    if let Ok(file) = tempfile::tempfile() {
        match build(root, BufWriter::new(file), &fingerprint, wanted) {
            Ok(out) => {
                if let Ok(file) = out.into_inner() {
                    return Ok((open(Storage::File(file))?, Provenance::Temporary(reason)));
                }
            }
            Err(Error::Build(index::BuildError::Write(_))) => {}
            Err(error) => return Err(error),
        }
    }
    let bytes = build(root, Vec::new(), &fingerprint, wanted)?;
    Ok((open(Storage::Memory(bytes))?, Provenance::Temporary(reason)))
}

/// The index in a cache directory, if it fits.
fn prepared(cache: &Path, fingerprint: &[u8], wanted: IndexContents) -> Result<Index, index::OpenError> {
    let file = trusted::open(&cache.join(INDEX_FILE))?;
    let index = Index::open_for(Storage::File(file), fingerprint)?;
    if wanted.blobs && !index.has_blobs() {
        return Err(index::OpenError::WithoutBlobs);
    }
    if wanted.whole && !index.broken().is_empty() {
        // Building it reports the errors.
        return Err(index::OpenError::Stale);
    }
    Ok(index)
}

/// Checks that an index is byte for byte the one that the catalog yields.
fn verify(root: &Path, cache: &Path, fingerprint: &[u8], wanted: IndexContents, index: &Index) -> Result<(), Error> {
    let opened = trusted::open(&cache.join(INDEX_FILE)).map_err(index::OpenError::Read);
    let compare = Compare {
        file: BufReader::new(opened.map_err(Error::Enforced)?),
        buffer: Vec::new(),
    };
    let wanted = IndexContents {
        blobs: index.has_blobs(),
        ..wanted
    };
    let different = || Error::Enforced(index::OpenError::Different);
    let mut compare = match build(root, compare, fingerprint, wanted) {
        Err(Error::Build(index::BuildError::Write(_))) => return Err(different()),
        built => built?,
    };
    match compare.file.read(&mut [0]) {
        Ok(0) => Ok(()),
        _ => Err(different()),
    }
}

/// A writer that fails if its data differs from a file's.
struct Compare {
    file: BufReader<File>,
    buffer: Vec<u8>,
}

impl Write for Compare {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.resize(bytes.len(), 0);
        self.file.read_exact(&mut self.buffer)?;
        if self.buffer != bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The index of a catalog as bytes, for a catalog image. All of the catalog must be right.
///
/// # Errors
/// The catalog cannot be read or is wrong.
pub fn bytes(root: &Path) -> Result<Vec<u8>, Error> {
    let wanted = IndexContents {
        whole: true,
        ..IndexContents::default()
    };
    build(root, Vec::new(), &fingerprint::compute(root)?, wanted)
}

fn open(storage: Storage) -> Result<Index, Error> {
    Index::open(storage).map_err(|error| index::BuildError::Write(std::io::Error::other(error)).into())
}

/// Builds the index in a cache directory: under another name first, so that no reader sees a partial file.
fn keep(root: &Path, cache: &Path, fingerprint: &[u8], wanted: IndexContents) -> Result<Index, Error> {
    let write = |error: std::io::Error| Error::Build(index::BuildError::Write(error));
    std::fs::create_dir_all(cache).map_err(write)?;
    let file = temporary::File::within(cache, ".index-").map_err(write)?;
    let file = build(root, BufWriter::new(file), fingerprint, wanted)?
        .into_inner()
        .map_err(|error| write(error.into_error()))?;
    // The server may run as another user and must be able to read the file.
    let file = file
        .persist(&cache.join(INDEX_FILE), Durability::Synced)
        .map_err(write)?;
    open(Storage::File(file))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn in_cache(cache: &Path, enforce: bool) -> Options<'_> {
        Options {
            cache: Some(cache),
            enforce,
            wanted: IndexContents::default(),
        }
    }

    const CATALOG: &str = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\n\
        package: p\nentries:\n- name: p.v1\n---\nschema: olm.bundle\nname: p.v1\npackage: p\nimage: r.io/p:v1\n\
        properties:\n- type: olm.package\n  value:\n    packageName: p\n    version: 1.0.0\n";

    fn catalog() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (configs, cache) = (root.path().join("configs"), root.path().join("cache"));
        std::fs::create_dir(&configs).unwrap();
        std::fs::write(configs.join("p.yaml"), CATALOG).unwrap();
        (root, configs, cache)
    }

    #[test]
    fn a_prepared_index_is_used_until_the_catalog_changes() {
        let (_root, configs, cache) = catalog();
        assert!(matches!(
            index(&configs, in_cache(&cache, false)).unwrap().1,
            Provenance::Built
        ));
        assert!(matches!(
            index(&configs, in_cache(&cache, true)).unwrap().1,
            Provenance::Prepared
        ));
        std::fs::write(configs.join("p.yaml"), CATALOG.replace("1.0.0", "1.0.1")).unwrap();
        assert!(matches!(
            index(&configs, in_cache(&cache, true)),
            Err(Error::Enforced(index::OpenError::Stale))
        ));
        assert!(matches!(
            index(&configs, in_cache(&cache, false)).unwrap().1,
            Provenance::Built
        ));
    }

    #[test]
    fn an_index_that_others_can_have_written_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_root, configs, cache) = catalog();
        index(&configs, in_cache(&cache, false)).unwrap();
        let file = cache.join(INDEX_FILE);
        let whole = std::fs::read(&file).unwrap();
        // Root, as which tests in containers run, can change the file's owner. Other users can only make it writable
        // for all.
        let foreign = |file: &Path| match std::os::unix::fs::chown(file, Some(65534), Some(65534)) {
            Ok(()) => "belongs to user 65534",
            Err(_) => {
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o666)).unwrap();
                "may be written by others"
            }
        };
        let reason = foreign(&file);
        let error = index(&configs, in_cache(&cache, true)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        let (_, provenance) = index(&configs, in_cache(&cache, false)).unwrap();
        assert!(matches!(provenance, Provenance::Built));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        let error = index(&configs, in_cache(&cache, true)).unwrap_err().to_string();
        assert!(error.contains("may be written by others (mode 666)"), "{error}");
        // Files behind a symbolic link are not trusted either, and a pipe does not block.
        let elsewhere = configs.parent().unwrap().join("elsewhere");
        std::fs::write(&elsewhere, whole).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        index(&configs, in_cache(&cache, true)).unwrap_err();
        std::fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, 0o600.into()).unwrap();
        let error = index(&configs, in_cache(&cache, true)).unwrap_err().to_string();
        assert!(error.contains("is not a regular file"), "{error}");
        let (_, provenance) = index(&configs, in_cache(&cache, false)).unwrap();
        assert!(matches!(provenance, Provenance::Built));
    }

    #[test]
    fn an_enforced_index_is_what_the_catalog_gives() {
        let (root, configs, cache) = catalog();
        // Made from another catalog, but in the name of this one.
        let evil = root.path().join("evil");
        std::fs::create_dir(&evil).unwrap();
        std::fs::write(evil.join("p.yaml"), CATALOG.replace("r.io/p:v1", "evil.io/p:v1")).unwrap();
        let fingerprint = fingerprint::compute(&configs).unwrap();
        let forged = build(&evil, Vec::new(), &fingerprint, IndexContents::default()).unwrap();
        std::fs::create_dir(&cache).unwrap();
        std::fs::write(cache.join(INDEX_FILE), &forged).unwrap();
        let error = index(&configs, in_cache(&cache, true)).unwrap_err();
        assert!(matches!(error, Error::Enforced(index::OpenError::Different)), "{error}");
        // One that is longer than it should be is wrong, too.
        let mut longer = bytes(&configs).unwrap();
        longer.splice(0..0, *b"x");
        std::fs::write(cache.join(INDEX_FILE), &longer).unwrap();
        index(&configs, in_cache(&cache, true)).unwrap_err();
        std::fs::write(cache.join(INDEX_FILE), bytes(&configs).unwrap()).unwrap();
        index(&configs, in_cache(&cache, true)).unwrap();
    }

    #[test]
    fn truncated_and_foreign_indexes_are_built_anew() {
        let (_root, configs, cache) = catalog();
        index(&configs, in_cache(&cache, false)).unwrap();
        let file = cache.join(INDEX_FILE);
        let whole = std::fs::read(&file).unwrap();
        for length in [0, 5, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).unwrap();
            let (index, provenance) = index(&configs, in_cache(&cache, false)).unwrap();
            assert!(matches!(provenance, Provenance::Built), "{length}");
            assert_eq!(index.packages().len(), 1);
        }
        let mut damaged = whole.clone();
        damaged[whole.len() - 40] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        assert!(matches!(
            index(&configs, in_cache(&cache, false)).unwrap().1,
            Provenance::Built
        ));
        assert_eq!(
            std::fs::read(&file).unwrap(),
            whole,
            "building twice gives the same bytes"
        );
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_no_failure() {
        let (_root, configs, _) = catalog();
        let occupied = configs.join("p.yaml");
        let (index, provenance) = index(&configs, in_cache(&occupied, false)).unwrap();
        assert!(matches!(provenance, Provenance::Temporary(Some(_))));
        assert_eq!(index.counts(), (1, 1));
    }

    #[test]
    fn wrong_catalogs_give_no_index() {
        let (_root, configs, cache) = catalog();
        std::fs::write(
            configs.join("p.yaml"),
            CATALOG.replace("defaultChannel: c", "defaultChannel: x"),
        )
        .unwrap();
        assert!(matches!(
            index(&configs, in_cache(&cache, false)),
            Err(Error::Invalid(_))
        ));
        assert!(!cache.join(INDEX_FILE).exists());
    }

    fn package(name: &str) -> String {
        CATALOG
            .replace("p.v1", &format!("{name}.v1"))
            .replace("name: p\n", &format!("name: {name}\n"))
            .replace("package: p\n", &format!("package: {name}\n"))
            .replace("packageName: p\n", &format!("packageName: {name}\n"))
    }

    fn served(index: &Index) -> Vec<&str> {
        index.packages().iter().map(|package| package.name.as_str()).collect()
    }

    fn left_out(index: &Index) -> Vec<(&str, &str)> {
        let broken = index.broken().iter();
        broken.map(|one| (one.package.as_str(), one.message.as_str())).collect()
    }

    #[test]
    fn sound_packages_are_served_beside_a_wrong_one() {
        let (_root, configs, cache) = catalog();
        std::fs::write(
            configs.join("q.yaml"),
            package("q").replace("name: q.v1\npackage", "name: q.v2\npackage"),
        )
        .unwrap();
        std::fs::write(configs.join("r.yaml"), package("r")).unwrap();
        let (built, _) = index(&configs, in_cache(&cache, false)).unwrap();
        assert_eq!(served(&built), ["p", "r"]);
        let [(name, message)] = left_out(&built)[..] else {
            panic!("{:?}", built.broken())
        };
        assert_eq!(name, "q");
        assert!(message.contains("q.v2"), "{message}");
        assert_eq!(built.counts(), (2, 2));
        let (again, provenance) = index(&configs, in_cache(&cache, true)).unwrap();
        assert!(matches!(provenance, Provenance::Prepared));
        assert_eq!(left_out(&again), left_out(&built), "a prepared index lists it too");
        let whole = Options {
            wanted: IndexContents {
                whole: true,
                ..IndexContents::default()
            },
            ..in_cache(&cache, false)
        };
        let error = index(&configs, whole).unwrap_err().to_string();
        assert!(error.contains("q.v2"), "{error}");
    }

    #[test]
    fn a_file_that_breaks_off_takes_out_the_packages_it_mentions() {
        let (_root, configs, cache) = catalog();
        std::fs::write(configs.join("q.yaml"), package("q")).unwrap();
        std::fs::write(
            configs.join("more.yaml"),
            format!(
                "{}---\nschema: olm.deprecations\npackage: q\nentries: [\n",
                package("pq")
            ),
        )
        .unwrap();
        let (index, _) = index(&configs, in_cache(&cache, false)).unwrap();
        assert_eq!(served(&index), ["p"]);
        let left_out = left_out(&index);
        assert_eq!(left_out.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["pq", "q"]);
        assert!(
            left_out.iter().all(|(_, message)| message.contains("more.yaml:")),
            "{left_out:?}"
        );
    }

    #[test]
    fn blobs_are_stored_if_asked_for() {
        let (_root, configs, cache) = catalog();
        index(&configs, in_cache(&cache, false)).unwrap();
        let with_blobs = Options {
            wanted: IndexContents {
                blobs: true,
                ..IndexContents::default()
            },
            ..in_cache(&cache, false)
        };
        let (index, provenance) = index(&configs, with_blobs).unwrap();
        assert!(
            matches!(provenance, Provenance::Built),
            "an index without blobs does not fit"
        );
        let slots = index.blobs(0).unwrap();
        let texts: Vec<_> = slots.iter().map(|slot| index.piece(slot.json).unwrap()).collect();
        assert_eq!(
            texts[0],
            "{\"defaultChannel\":\"c\",\"name\":\"p\",\"schema\":\"olm.package\"}\n"
        );
        assert_eq!(
            (
                slots[2].schema.as_str(),
                slots[2].package.as_str(),
                slots[2].name.as_str()
            ),
            ("olm.bundle", "p", "p.v1")
        );
    }
}
