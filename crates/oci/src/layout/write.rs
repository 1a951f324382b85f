//! Adding blobs. A blob gets its name when it is complete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use olmkit::temporary::{self, Durability};

use super::Layout;
use crate::digest::{Digest, DigestWriter};
use crate::error::Error;
use crate::spec::Descriptor;

impl Layout {
    /// Stores a document or other small blob.
    pub fn write_blob(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, Error> {
        let mut blob = self.blob_writer()?;
        blob.write_all(bytes).map_err(Error::file("write", &self.root))?;
        let (digest, size) = self.store(blob)?;
        Ok(Descriptor::new(media_type, digest, size))
    }

    /// Stores a document under the digest that names it, whose algorithm is not always SHA-256.
    pub(crate) fn write_document(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), Error> {
        let mut file = self.temporary()?;
        file.write_all(bytes).map_err(Error::file("write", &self.root))?;
        self.persist(file, &descriptor.digest)
    }

    /// A blob to be written piece by piece. It gets its name in [`Self::store`].
    pub fn blob_writer(&self) -> Result<DigestWriter<temporary::File>, Error> {
        Ok(DigestWriter::new(self.temporary()?))
    }

    /// Gives a finished blob its name.
    pub fn store(&self, blob: DigestWriter<temporary::File>) -> Result<(Digest, u64), Error> {
        let (file, digest, size) = blob.finish();
        self.persist(file, &digest)?;
        Ok((digest, size))
    }

    /// An unnamed file in the layout, on the same file system as the blobs.
    pub(crate) fn temporary(&self) -> Result<temporary::File, Error> {
        let folder = self.root.join("blobs");
        temporary::File::within(&folder, temporary::PARTIAL).map_err(Error::file("create", &folder))
    }

    /// Moves a file whose bytes have this digest to its blob name.
    pub(crate) fn persist(&self, file: temporary::File, digest: &Digest) -> Result<(), Error> {
        self.name(file, digest)?;
        if self.private {
            self.written().verified.insert(digest.clone());
        }
        Ok(())
    }

    fn name(&self, file: temporary::File, digest: &Digest) -> Result<(), Error> {
        let path = self.blob_path(digest);
        self.create_folder(path.parent().unwrap_or(&self.root))?;
        file.persist(&path, Durability::Unsynced)
            .map_err(Error::file("write", &path))?;
        self.written().unsynced.insert(path);
        Ok(())
    }

    /// Takes a blob of another layout, whose bytes the caller has checked or will check: by hard link where possible, else by copy.
    /// Build systems write layouts whose blobs are symbolic links. A hard link would be one to the symbolic link, which may lead
    /// nowhere from here.
    pub(crate) fn adopt(&self, from: &Path, digest: &Digest) -> Result<(), Error> {
        let path = self.blob_path(digest);
        if path.is_file() {
            return Ok(());
        }
        self.create_folder(path.parent().unwrap_or(&self.root))?;
        let is_link = fs::symlink_metadata(from).is_ok_and(|metadata| metadata.is_symlink());
        if !is_link && fs::hard_link(from, &path).is_ok() || path.is_file() {
            self.written().unsynced.insert(path);
            return Ok(());
        }
        let mut temporary = self.temporary()?;
        let mut source = olmkit::limits::open(from).map_err(Error::file("read", from))?;
        io::copy(&mut source, &mut temporary).map_err(Error::file("write", &path))?;
        self.name(temporary, digest)
    }

    pub(super) fn create_folder(&self, folder: &Path) -> Result<(), Error> {
        if folder.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        // Its name must be written to disk too.
        self.written().unsynced.insert(folder.to_owned());
        Ok(())
    }

    /// Writes everything to disk that this process has added, each file and each directory once.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let unsynced = std::mem::take(&mut self.written().unsynced);
        if self.durability == Durability::Unsynced {
            return Ok(());
        }
        let mut folders = BTreeSet::new();
        for path in &unsynced {
            folders.extend(path.parent());
            // A file that is no longer there needs nothing.
            if path.is_file() {
                let synced = File::open(path).and_then(|file| file.sync_all());
                synced.map_err(Error::file("write", path))?;
            }
        }
        // The index is written into the root after this, which writes the names there.
        folders.remove(self.root.as_path());
        for folder in folders {
            temporary::sync_directory(folder).map_err(Error::file("write", folder))?;
        }
        Ok(())
    }

    pub(super) fn replace(&self, name: &str, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        let path = self.root.join(name);
        let mut file =
            temporary::File::within(&self.root, temporary::PARTIAL).map_err(Error::file("create", &self.root))?;
        file.write_all(bytes).map_err(Error::file("write", &path))?;
        file.persist(&path, durability).map_err(Error::file("write", &path))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_links_are_copied_as_files() {
        let folder = tempfile::tempdir().unwrap();
        let from = Layout::create(&folder.path().join("from")).unwrap();
        let blob = from.write_blob("text/plain", b"memcached").unwrap();
        let place = from.blob_path(&blob.digest);
        fs::rename(&place, folder.path().join("from/elsewhere")).unwrap();
        std::os::unix::fs::symlink("../../elsewhere", &place).unwrap();
        let to = Layout::create(&folder.path().join("to")).unwrap();
        to.adopt(&place, &blob.digest).unwrap();
        fs::remove_dir_all(from.root()).unwrap();
        assert_eq!(to.read_document(&blob).unwrap(), b"memcached");
    }
}
