//! From a catalog directory to an index: the one that was prepared, if it fits, else a new one.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use super::assemble::{Wanted, build};
use super::fingerprint;
use super::index::{self, Index, Storage};
use crate::catalog::load;

/// Name of the index file in a cache directory. The format is part of it, so that versions of this program can share a
/// directory, and opm's own caches are left alone.
pub const INDEX_FILE: &str = "olmkit-2.index";

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog cannot be read.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// The catalog is wrong; opm's text.
    #[error("{0}")]
    Invalid(String),
    /// The index cannot be built.
    #[error(transparent)]
    Build(#[from] index::BuildError),
    /// The prepared index was to be used and does not fit.
    #[error("cache requires rebuild: {0}; build it with {preparing}, or leave out --cache-enforce-integrity",
        preparing = if matches!(.0, index::OpenError::WithoutBlobs) { "--cache-only --http" } else { "--cache-only" })]
    Enforced(index::OpenError),
}

/// Which index is wanted, and where it may be kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'p> {
    /// The cache directory.
    pub cache: Option<&'p Path>,
    /// Use the prepared index or fail.
    pub enforce: bool,
    /// What the index is to hold.
    pub wanted: Wanted,
}

/// How an index came about.
#[derive(Debug)]
pub enum Provenance {
    /// The prepared one fits.
    Prepared,
    /// Built and kept in the cache directory.
    Built,
    /// Built, and gone with the process: why it could not be kept, if it was to be.
    Temporary(Option<String>),
}

/// The index in the cache directory, if it was made from exactly this catalog: what calls can be answered from at once
/// while one that also holds the blobs is being built.
///
/// # Errors
/// The catalog cannot be read.
pub fn prepared_without_blobs(root: &Path, options: Options<'_>) -> Result<Option<Index>, Error> {
    let Some(cache) = options.cache.filter(|_| options.wanted.blobs && !options.enforce) else {
        return Ok(None);
    };
    let wanted = Wanted {
        blobs: false,
        ..options.wanted
    };
    let found = prepared(cache, &fingerprint::remembered(root, cache)?, wanted).ok();
    Ok(found.filter(|index| !index.has_blobs()))
}

/// Opens the index in the cache directory if it was made from exactly this catalog and holds what is wanted, else builds
/// one. A cache that is missing, stale, damaged, foreign or cannot be written is no failure unless it is enforced.
///
/// # Errors
/// The catalog cannot be read, or nothing in it is right, or something is wrong and all of it was wanted.
pub fn index(root: &Path, options: Options<'_>) -> Result<(Index, Provenance), Error> {
    let Options { cache, enforce, wanted } = options;
    let fingerprint = match cache {
        // Who enforces integrity wants every byte looked at.
        Some(cache) if !enforce => fingerprint::remembered(root, cache)?,
        _ => fingerprint::of(root)?,
    };
    if let Some(cache) = cache {
        match prepared(cache, &fingerprint, wanted) {
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
    // No place to keep it: an unnamed temporary file, or memory where there is none or it is full.
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
fn prepared(cache: &Path, fingerprint: &[u8], wanted: Wanted) -> Result<Index, index::OpenError> {
    let file = File::open(cache.join(INDEX_FILE))?;
    let index = Index::open_for(Storage::File(file), fingerprint)?;
    if wanted.blobs && !index.has_blobs() {
        return Err(index::OpenError::WithoutBlobs);
    }
    if wanted.whole && !index.broken().is_empty() {
        // Building it says what is wrong.
        return Err(index::OpenError::Stale);
    }
    Ok(index)
}

/// The index of a catalog as bytes, for a catalog image. All of the catalog must be right.
///
/// # Errors
/// The catalog cannot be read or is wrong.
pub fn bytes(root: &Path) -> Result<Vec<u8>, Error> {
    let wanted = Wanted {
        whole: true,
        ..Wanted::default()
    };
    build(root, Vec::new(), &fingerprint::of(root)?, wanted)
}

fn open(storage: Storage) -> Result<Index, Error> {
    Index::open(storage).map_err(|error| index::BuildError::Write(std::io::Error::other(error)).into())
}

/// Builds the index in a cache directory: under another name first, so that nobody ever sees half of one.
fn keep(root: &Path, cache: &Path, fingerprint: &[u8], wanted: Wanted) -> Result<Index, Error> {
    let write = |error: std::io::Error| Error::Build(index::BuildError::Write(error));
    std::fs::create_dir_all(cache).map_err(write)?;
    let file = tempfile::Builder::new()
        .prefix(".index-")
        .tempfile_in(cache)
        .map_err(write)?;
    let mut file = build(root, BufWriter::new(file), fingerprint, wanted)?
        .into_inner()
        .map_err(|error| write(error.into_error()))?;
    file.flush().map_err(write)?;
    readable(file.as_file()).map_err(write)?;
    file.as_file().sync_all().map_err(write)?;
    let file = file
        .persist(cache.join(INDEX_FILE))
        .map_err(|error| write(error.error))?;
    open(Storage::File(file))
}

/// Whoever serves later may be another user.
fn readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn in_cache(cache: &Path, enforce: bool) -> Options<'_> {
        Options {
            cache: Some(cache),
            enforce,
            wanted: Wanted::default(),
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
        assert_eq!(left_out(&again), left_out(&built), "a prepared index knows it too");
        let whole = Options {
            wanted: Wanted {
                whole: true,
                ..Wanted::default()
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
            wanted: Wanted {
                blobs: true,
                ..Wanted::default()
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
