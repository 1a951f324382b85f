//! Detects changes of a catalog's files.

use std::io::Read as _;
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use olmkit::catalog::{load, walk};
use olmkit::limits;
use olmkit::temporary::{self, Durability};

use super::trusted;

/// A fingerprint of the catalog's content: the names and bytes of all its files. Times and modes are not included,
/// because copying changes them.
///
/// # Errors
/// A file cannot be read.
pub fn compute(root: &Path) -> Result<Vec<u8>, load::Error> {
    if !root.is_dir() {
        return Err(load::Error::NotADirectory(root.to_owned()));
    }
    let files = walk::files(root)?;
    let digests: Vec<u128> = files
        .par_iter()
        .map_init(Vec::new, |buffer, file| {
            hash_file(file, buffer).map_err(|source| load::Error::Read {
                file: file.clone(),
                source,
            })
        })
        .collect::<Result<_, load::Error>>()?;
    let mut all = Xxh3::new();
    for (file, digest) in files.iter().zip(digests) {
        let name = file.strip_prefix(root).unwrap_or(file);
        all.update(name.as_os_str().as_encoded_bytes());
        all.update(&[0]);
        all.update(&digest.to_le_bytes());
    }
    Ok(all.digest128().to_le_bytes().to_vec())
}

/// File system metadata of a catalog's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamp {
    /// Names, locations, lengths and times of all files.
    digest: u128,
    /// Last change of any of them, in seconds.
    newest: i64,
}

impl Stamp {
    /// Reads the metadata of the catalog's files. `None` if that fails for one of them.
    pub fn read(root: &Path) -> Option<Stamp> {
        use std::os::unix::fs::MetadataExt as _;
        let root = root.canonicalize().ok()?;
        let (mut hasher, mut newest) = (Xxh3::new(), i64::MIN);
        for file in walk::files(&root).ok()? {
            let metadata = file.metadata().ok()?;
            hasher.update(file.as_os_str().as_encoded_bytes());
            hasher.update(&[0]);
            // Only the kernel sets the change time: neither copying nor `touch` can restore an old one.
            for part in [metadata.dev(), metadata.ino(), metadata.size()] {
                hasher.update(&part.to_le_bytes());
            }
            for part in [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ] {
                hasher.update(&part.to_le_bytes());
            }
            newest = newest.max(metadata.ctime());
        }
        Some(Stamp {
            digest: hasher.digest128(),
            newest,
        })
    }

    /// Returns true if a further change would show: clocks of file systems tick slowly, and two changes may bear one time.
    fn settled(self) -> bool {
        /// The coarsest clocks of file systems tick in steps of this many seconds.
        const TICK: i64 = 2;
        self.newest.saturating_add(TICK) < jiff::Timestamp::now().as_second()
    }
}

/// Name of the file in a cache directory that stores the last fingerprint and the stamp of its files. The number
/// changes with the fingerprint's definition.
const SEEN_FILE: &str = "olmkit-1.seen";

/// As [`of`], without reading files that have not changed since their fingerprint was cached, so that a catalog of
/// hundreds of megabytes is recognized immediately. If the cache is not writable, nothing is cached.
///
/// # Errors
/// A file cannot be read.
pub fn remembered(root: &Path, cache: &Path) -> Result<Vec<u8>, load::Error> {
    let before = Stamp::read(root);
    let seen = cache.join(SEEN_FILE);
    if let Some(known) = before.and_then(|stamp| recall(&seen, stamp)) {
        return Ok(known);
    }
    // Files that changed a moment ago may change again within the same tick.
    let settled = before.filter(|stamp| stamp.settled());
    let fingerprint = compute(root)?;
    if let Some(stamp) = settled
        && Stamp::read(root) == settled
    {
        // It only saves time. A cache that is read-only or full does without.
        let _ = keep(&seen, stamp, &fingerprint);
    }
    Ok(fingerprint)
}

fn line(stamp: Stamp, fingerprint: &str) -> String {
    let text = format!("{:032x} {fingerprint}", stamp.digest);
    format!("{text} {:08x}\n", crc32fast::hash(text.as_bytes()))
}

fn recall(seen: &Path, stamp: Stamp) -> Option<Vec<u8>> {
    /// Longer than any file that was written here, in bytes.
    const LIMIT: u64 = 256;
    let mut text = String::new();
    trusted::open(seen).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    let fingerprint = text.split(' ').nth(1)?;
    if text != line(stamp, fingerprint) {
        return None;
    }
    let digits = fingerprint.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// Written under another name first, so that no reader sees a partial file.
fn keep(seen: &Path, stamp: Stamp, fingerprint: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let Some(cache) = seen.parent() else { return Ok(()) };
    std::fs::create_dir_all(cache)?;
    let mut file = temporary::File::within(cache, ".seen-")?;
    let hex: String = fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
    file.write_all(line(stamp, &hex).as_bytes())?;
    file.persist(seen, Durability::Unsynced)?;
    Ok(())
}

fn hash_file(file: &Path, buffer: &mut Vec<u8>) -> std::io::Result<u128> {
    // Small enough for the processor's cache between reading and hashing.
    buffer.resize(64 << 10, 0);
    let mut hasher = Xxh3::new();
    let mut file = limits::open(file)?;
    loop {
        let length = file.read(buffer)?;
        if length == 0 {
            return Ok(hasher.digest128());
        }
        hasher.update(buffer.get(..length).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn catalog() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (configs, cache) = (root.path().join("configs"), root.path().join("cache"));
        std::fs::create_dir(&configs).unwrap();
        std::fs::write(configs.join("p.yaml"), "schema: a\n").unwrap();
        (root, configs, cache)
    }

    fn settle(configs: &Path) -> Stamp {
        loop {
            let stamp = Stamp::read(configs).unwrap();
            if stamp.settled() {
                return stamp;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    #[test]
    fn the_cache_is_used_while_the_files_are_unchanged() {
        let (_root, configs, cache) = catalog();
        settle(&configs);
        let first = remembered(&configs, &cache).unwrap();
        assert_eq!(first, compute(&configs).unwrap());
        // A value that only the cached file has shows that the catalog is not read again.
        let kept = vec![7; 16];
        keep(&cache.join(SEEN_FILE), Stamp::read(&configs).unwrap(), &kept).unwrap();
        assert_eq!(remembered(&configs, &cache).unwrap(), kept);
        // The same length and, by `touch`, the same modification time.
        let file = configs.join("p.yaml");
        let modified = file.metadata().unwrap().modified().unwrap();
        std::fs::write(&file, "schema: b\n").unwrap();
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        let changed = remembered(&configs, &cache).unwrap();
        assert_eq!(changed, compute(&configs).unwrap());
        assert_ne!(changed, first);
    }

    #[test]
    fn a_file_that_is_new_or_ignored_changes_the_stamp() {
        let (_root, configs, _) = catalog();
        let first = Stamp::read(&configs).unwrap();
        std::fs::write(configs.join("q.yaml"), "").unwrap();
        let second = Stamp::read(&configs).unwrap();
        assert_ne!(first.digest, second.digest);
        std::fs::write(configs.join(".indexignore"), "q.yaml\n").unwrap();
        assert_eq!(Stamp::read(&configs).unwrap().digest, first.digest);
    }

    #[test]
    fn files_that_changed_a_moment_ago_are_read_each_time() {
        let (_root, configs, cache) = catalog();
        let stamp = Stamp::read(&configs).unwrap();
        let fresh = Stamp {
            newest: jiff::Timestamp::now().as_second(),
            ..stamp
        };
        assert!(!fresh.settled());
        remembered(&configs, &cache).unwrap();
        // A machine that was slow enough may keep it.
        assert!(stamp.settled() || !cache.join(SEEN_FILE).exists());
    }

    #[test]
    fn a_damaged_or_foreign_memory_is_no_memory() {
        let (_root, configs, cache) = catalog();
        let stamp = settle(&configs);
        let right = remembered(&configs, &cache).unwrap();
        let seen = cache.join(SEEN_FILE);
        let text = std::fs::read_to_string(&seen).unwrap();
        for wrong in [
            String::new(),
            text.trim_end().to_owned(),
            text.replacen(' ', " 0", 1),
            text.replace(' ', "\n"),
            "é é é".to_owned(),
            "x".repeat(10_000),
        ] {
            std::fs::write(&seen, &wrong).unwrap();
            assert_eq!(recall(&seen, stamp), None, "{wrong}");
            assert_eq!(remembered(&configs, &cache).unwrap(), right, "{wrong}");
        }
        std::fs::write(&seen, [0xff, 0xfe]).unwrap();
        assert_eq!(recall(&seen, stamp), None);
    }
}
