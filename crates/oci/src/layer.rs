//! Layers: a set of files becomes one tar archive, gzip-compressed, always with the same bytes for the same input.
//!
//! Values that would differ between machines are fixed: entries are sorted, owners are numbers given by the recipe (0 unless
//! said otherwise), permission bits are 0755 for directories and executables, 1777 for sticky directories (`/tmp`) and
//! 0644 for the rest (so a checkout under another umask gives the same layer), times are one given instant, and there is one compressor with one setting.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

use super::digest::{Digest, DigestWriter};
use super::error::Error;

/// Where a file's bytes come from.
#[derive(Debug, Clone)]
pub enum Content {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A file on this machine, read while the layer is written.
    File(PathBuf),
}

#[derive(Debug, Clone)]
enum Node {
    Directory,
    File(Content),
    Symlink(String),
}

#[derive(Debug, Clone)]
struct Entry {
    node: Node,
    mode: u32,
    owner: (u64, u64),
}

/// Collects the entries of one layer. Paths are absolute in the image. Parents are added by themselves.
#[derive(Debug, Clone, Default)]
pub struct LayerBuilder {
    entries: BTreeMap<String, Entry>,
    owner: (u64, u64),
}

/// The facts about a written layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenLayer {
    /// Digest of the compressed layer.
    pub digest: Digest,
    /// Size of the compressed layer in bytes.
    pub size: u64,
    /// Digest of the uncompressed tar archive.
    pub diff_id: Digest,
}

impl LayerBuilder {
    /// An empty layer whose entries belong to root.
    pub fn new() -> Self {
        Self::default()
    }

    /// User and group number of entries added from now on.
    pub fn owned_by(mut self, user: u64, group: u64) -> Self {
        self.owner = (user, group);
        self
    }

    /// Returns true if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The paths of all entries, sorted, without the leading slash.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Adds a file. `executable` chooses between the modes 0755 and 0644.
    pub fn file(&mut self, path: &str, content: Content, executable: bool) -> Result<&mut Self, Error> {
        self.insert(path, Node::File(content), if executable { 0o755 } else { 0o644 })
    }

    /// Adds a directory with the given permission bits, `0o755` or `0o1777`.
    pub fn directory(&mut self, path: &str, mode: u32) -> Result<&mut Self, Error> {
        self.insert(path, Node::Directory, mode)
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &str, target: &str) -> Result<&mut Self, Error> {
        self.insert(path, Node::Symlink(target.to_owned()), 0o777)
    }

    /// Adds a file, or a directory with everything below it, from this machine, at `path` in the image.
    /// Symbolic links below a directory are kept as links. One given directly is followed.
    pub fn tree(&mut self, source: &Path, path: &str) -> Result<&mut Self, Error> {
        let metadata = std::fs::metadata(source).map_err(Error::file("read", source))?;
        if metadata.is_file() {
            let executable = metadata.permissions().mode() & 0o111 != 0;
            return self.file(path, Content::File(source.to_owned()), executable);
        }
        let mut items = walkdir::WalkDir::new(source)
            .follow_root_links(true)
            .sort_by_file_name()
            .into_iter();
        while let Some(item) = items.next() {
            let item = item.map_err(|error| Error::File {
                action: "read",
                path: error.path().unwrap_or(source).to_owned(),
                source: error.into(),
            })?;
            let below = item.path().strip_prefix(source).unwrap_or(item.path());
            let below = below.to_str().ok_or_else(|| Error::Refused {
                what: item.path().display().to_string(),
                reason: "its name is not UTF-8".to_owned(),
            })?;
            // The layer contains only complete files, not those that another process is still writing.
            if item.file_type().is_dir() && olmkit::files::is_stage_in_use(item.path()) {
                items.skip_current_dir();
                continue;
            }
            if below.is_empty() && path.trim_matches('/').is_empty() {
                continue;
            }
            self.tree_item(&item, &format!("{path}/{below}"))?;
        }
        Ok(self)
    }

    fn tree_item(&mut self, item: &walkdir::DirEntry, path: &str) -> Result<(), Error> {
        let kind = item.file_type();
        if kind.is_dir() {
            let metadata = item.path().metadata().map_err(Error::file("read", item.path()))?;
            let sticky = metadata.permissions().mode() & 0o1000 != 0;
            self.directory(path, if sticky { 0o1777 } else { 0o755 })?;
        } else if kind.is_symlink() {
            let target = std::fs::read_link(item.path()).map_err(Error::file("read", item.path()))?;
            self.symlink(path, &target.to_string_lossy())?;
        } else if kind.is_file() {
            let metadata = item.path().metadata().map_err(Error::file("read", item.path()))?;
            let executable = metadata.permissions().mode() & 0o111 != 0;
            self.file(path, Content::File(item.path().to_owned()), executable)?;
        } else {
            return Err(Error::Refused {
                what: item.path().display().to_string(),
                reason: "only files, directories and symbolic links go into an image".to_owned(),
            });
        }
        Ok(())
    }

    fn insert(&mut self, path: &str, node: Node, mode: u32) -> Result<&mut Self, Error> {
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.is_empty() || parts.contains(&"..") || path.contains('\0') {
            return Err(Error::Input(format!("{path:?} is not a valid path in an image")));
        }
        let owner = self.owner;
        for end in 1..parts.len() {
            let parent = parts.get(..end).unwrap_or_default().join("/");
            let entry = self.entries.entry(parent).or_insert(Entry {
                node: Node::Directory,
                mode: 0o755,
                owner,
            });
            if !matches!(entry.node, Node::Directory) {
                return Err(Error::Input(format!(
                    "cannot add {path:?}: its parent is not a directory"
                )));
            }
        }
        self.entries.insert(parts.join("/"), Entry { node, mode, owner });
        Ok(self)
    }

    /// Writes the layer. `time` is the modification time of every entry in seconds since 1970.
    pub fn write(&self, output: impl Write, time: u64) -> Result<WrittenLayer, Error> {
        // 255 is "unknown operating system". No name and no time go into the gzip header.
        let compressed = DigestWriter::new(output);
        let gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(255)
            .write(compressed, Compression::new(6));
        let (gzip, diff_id, _) = self.write_tar(gzip, time)?;
        let compressed = gzip.finish().map_err(writing_layer)?;
        let (mut output, digest, size) = compressed.finish();
        output.flush().map_err(writing_layer)?;
        Ok(WrittenLayer { digest, size, diff_id })
    }

    fn write_tar<W: Write>(&self, output: W, time: u64) -> Result<(W, Digest, u64), Error> {
        let mut archive = tar::Builder::new(DigestWriter::new(output));
        for (path, entry) in &self.entries {
            append(&mut archive, path, entry, time)?;
        }
        Ok(archive.into_inner().map_err(writing_layer)?.finish())
    }
}

fn writing_layer(source: io::Error) -> Error {
    Error::File {
        action: "write",
        path: PathBuf::from("layer"),
        source,
    }
}

fn append<W: Write>(archive: &mut tar::Builder<W>, path: &str, entry: &Entry, time: u64) -> Result<(), Error> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_uid(entry.owner.0);
    header.set_gid(entry.owner.1);
    header.set_mtime(time);
    header.set_size(0);
    let failed = |source| Error::File {
        action: "write layer entry",
        path: PathBuf::from(path),
        source,
    };
    match &entry.node {
        Node::Directory => {
            header.set_entry_type(tar::EntryType::Directory);
            archive
                .append_data(&mut header, format!("{path}/"), io::empty())
                .map_err(failed)
        }
        Node::Symlink(target) => {
            header.set_entry_type(tar::EntryType::Symlink);
            archive.append_link(&mut header, path, target).map_err(failed)
        }
        Node::File(Content::Bytes(bytes)) => {
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, path, bytes.as_slice()).map_err(failed)
        }
        Node::File(Content::File(source)) => {
            let file = olmkit::limits::open(source).map_err(Error::file("read", source))?;
            let size = file.metadata().map_err(Error::file("read", source))?.len();
            header.set_size(size);
            // A file that grows or shrinks while it is read would break the archive's framing.
            let mut exact = ExactReader {
                inner: file,
                left: size,
            };
            archive
                .append_data(&mut header, path, &mut exact)
                .map_err(Error::file("read", source))
        }
    }
}

/// Yields exactly the announced number of bytes, or an error.
struct ExactReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for ExactReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let count = self.inner.by_ref().take(self.left).read(buffer)?;
        if count == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file shrank while it was read",
            ));
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(bytes: &[u8]) -> Vec<(String, u32, u64, u64, u64)> {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
                (
                    path,
                    header.mode().unwrap(),
                    header.uid().unwrap(),
                    header.mtime().unwrap(),
                    entry.size(),
                )
            })
            .collect()
    }

    #[test]
    fn order_of_adding_modes_and_times_of_the_source_leave_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("b.yaml", 0o600);
        write("a.yaml", 0o664);
        let mut first = LayerBuilder::new();
        first
            .tree(folder.path(), "/manifests")
            .unwrap()
            .file("/bin/x", Content::Bytes(vec![1]), true)
            .unwrap();
        write("b.yaml", 0o640);
        let mut second = LayerBuilder::new();
        second
            .file("bin/x", Content::Bytes(vec![1]), true)
            .unwrap()
            .tree(folder.path(), "manifests/")
            .unwrap();
        let (mut one, mut two) = (Vec::new(), Vec::new());
        assert_eq!(first.write(&mut one, 7).unwrap(), second.write(&mut two, 7).unwrap());
        assert_eq!(one, two);
        let expected = [
            ("bin/", 0o755, 0, 7, 0),
            ("bin/x", 0o755, 0, 7, 1),
            ("manifests/", 0o755, 0, 7, 0),
            ("manifests/a.yaml", 0o644, 0, 7, 6),
            ("manifests/b.yaml", 0o644, 0, 7, 6),
        ];
        assert_eq!(
            listing(&one),
            expected.map(|(path, mode, owner, time, size)| (path.to_owned(), mode, owner, time, size))
        );
    }

    #[test]
    fn digests_are_those_of_the_bytes_written() {
        let mut layer = LayerBuilder::new();
        layer.file("/a", Content::Bytes(b"x".to_vec()), false).unwrap();
        let mut bytes = Vec::new();
        let written = layer.write(&mut bytes, 0).unwrap();
        assert_eq!(written.digest, crate::digest::sha256(&bytes));
        assert_eq!(written.size, bytes.len() as u64);
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_end(&mut tar)
            .unwrap();
        assert_eq!(written.diff_id, crate::digest::sha256(&tar));
    }

    #[test]
    fn long_paths_survive() {
        let path = format!("{}/file.yaml", vec!["directory"; 40].join("/"));
        let mut layer = LayerBuilder::new();
        layer.file(&path, Content::Bytes(Vec::new()), false).unwrap();
        let mut bytes = Vec::new();
        layer.write(&mut bytes, 0).unwrap();
        assert_eq!(listing(&bytes).last().unwrap().0, path);
    }

    #[test]
    fn paths_out_of_the_image_are_refused() {
        for path in ["", "/", "..", "a/../../b"] {
            assert!(
                LayerBuilder::new()
                    .file(path, Content::Bytes(Vec::new()), false)
                    .is_err(),
                "{path:?}"
            );
        }
    }
}
