//! Images as one file: OCI layouts in a tar archive, and the format of `docker save`.

mod docker;
mod links;
mod oci;
mod saved;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use olmkit::temporary::{self, Durability};

use super::compression::Decoder;
use super::error::Error;
use super::layout::Layout;
use super::limits::{self, ARCHIVE_BYTES, DOCUMENT_BYTES};
use super::tarball::{self, Member};
use super::unpack::Limits;
pub(crate) use docker::check_layer_count;
pub use docker::{repository_tag, write_docker};
use links::clean;
pub use oci::{read_oci, write_oci};
pub use saved::read_docker;
pub(crate) use saved::{DockerImages, read_docker_images};

/// Reads an archive of either format into a directory and opens the layout there. One that is both, as newer versions
/// of `docker save` write it, is read as OCI archive.
pub fn read(path: &Path, folder: &Path) -> Result<Layout, Error> {
    match read_oci(path, &folder.join("oci")) {
        // It has no index with images.
        Err(Error::Missing { .. }) => read_docker(path, &folder.join("docker")),
        result => result,
    }
}

/// How large a compressed archive, or a layer in one, may be once decompressed.
fn unpacking_limits() -> Limits {
    Limits {
        layer_bytes: ARCHIVE_BYTES,
        ..Limits::default()
    }
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    name: &str,
    size: u64,
    content: &mut dyn Read,
    path: &Path,
) -> Result<(), Error> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(size);
    header.set_mtime(0);
    archive
        .append_data(&mut header, name, content.take(size))
        .map_err(Error::file("write", path))
}

/// Writes a file that appears only when it is complete.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Result<(), Error> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Checked first: the error of a temporary file would name that file.
    fs::metadata(folder).map_err(Error::file("create", path))?;
    let mut file = temporary::File::within(folder, temporary::PARTIAL).map_err(Error::file("create", path))?;
    let mut output = BufWriter::new(&mut file);
    write(&mut output)?;
    output.flush().map_err(Error::file("write", path))?;
    drop(output);
    file.persist(path, Durability::Synced)
        .map_err(Error::file("write", path))?;
    Ok(())
}

fn document(content: &mut dyn Read, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    content
        .take(DOCUMENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(Error::file("read", path))?;
    Ok(bytes)
}

/// Calls `visit` for each member of an archive, which may be compressed. Names are only compared and looked up, never used
/// as paths on this machine.
fn for_each(
    path: &Path,
    mut visit: impl FnMut(&str, &Member, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let refused = |reason: String| Error::Refused {
        what: path.display().to_string(),
        reason,
    };
    let file = olmkit::limits::open(path).map_err(Error::file("read", path))?;
    let size = file.metadata().map_err(Error::file("read", path))?.len();
    let decoder = Decoder::new(BufReader::new(file)).map_err(|error| refused(error.to_string()))?;
    let limit = if decoder.is_plain() {
        ARCHIVE_BYTES
    } else {
        unpacking_limits().unpacked_layer(size)
    };
    let mut number = 0;
    tarball::for_each(
        &mut decoder.take(limit),
        &path.display().to_string(),
        |member, content| {
            number += 1;
            if number > limits::ARCHIVE_ENTRIES {
                return Err(refused("it has too many entries".to_owned()));
            }
            match clean(&member.path) {
                Some(name) => visit(&name, &member, content),
                None => Ok(()),
            }
        },
    )
}
