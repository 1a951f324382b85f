//! OCI layouts in a tar archive.

use std::fs;
use std::io::{self, Read, Seek};
use std::path::Path;

use olmkit::temporary;

use super::links::Links;
use super::{append, document, for_each, replace};
use crate::digest::{Digest, DigestReader};
use crate::error::Error;
use crate::layout::Layout;
use crate::spec::Descriptor;
use crate::tarball::MemberKind;

/// Writes an image and everything it points at as an OCI layout in a tar archive.
pub fn write_oci(layout: &Layout, image: &Descriptor, name: &str, path: &Path) -> Result<(), Error> {
    let folder = temporary::Directory::new("archive").map_err(Error::file("create", path))?;
    let copy = Layout::create_temporary(folder.path())?;
    let mut blobs = layout.reachable(image)?;
    blobs.sort_by(|one, two| one.digest.cmp(&two.digest));
    // Only its index is needed. The blobs are read in place.
    copy.set(name, image)?;
    replace(path, |output| {
        let mut archive = tar::Builder::new(output);
        for file in ["index.json", "oci-layout"] {
            let bytes = fs::read(folder.path().join(file)).map_err(Error::file("read", folder.path()))?;
            append(&mut archive, file, bytes.len() as u64, &mut bytes.as_slice(), path)?;
        }
        for blob in &blobs {
            let mut reader = layout.open_blob(blob)?;
            let inside = format!("blobs/{}/{}", blob.digest.algorithm_name(), blob.digest.hex());
            append(&mut archive, &inside, blob.size, &mut reader, path)?;
            reader.verify()?;
        }
        archive.finish().map_err(Error::file("write", path))
    })
}

/// Reads an OCI archive into a directory and opens the layout there. Blobs are checked against their names.
pub fn read_oci(path: &Path, folder: &Path) -> Result<Layout, Error> {
    let layout = Layout::create_temporary(folder)?.with_archive(path);
    let mut links = Links::default();
    for_each(path, |name, member, content| match member.kind {
        MemberKind::File => read_part(name, content, &layout, path),
        _ => {
            links.add(name, member);
            Ok(())
        }
    })?;
    let aliases = links.aliases(|name| name == "index.json" || name == "blobs" || name.starts_with("blobs/"));
    if !aliases.is_empty() {
        // The targets of links may come before the links, so the archive is read again.
        for_each(path, |name, member, content| {
            if member.kind != MemberKind::File {
                return Ok(());
            }
            let above = name
                .match_indices('/')
                .filter_map(|(end, _)| name.split_at_checked(end));
            let targets = above.chain([(name, "")]);
            let found = targets
                .flat_map(|(target, rest)| aliases.get(target).into_iter().flatten().map(move |link| (link, rest)));
            let mut names: Vec<String> = found.map(|(link, rest)| format!("{link}{rest}")).collect();
            names.sort();
            names.dedup();
            let Some((first, others)) = names.split_first() else {
                return Ok(());
            };
            if others.is_empty() {
                return read_part(first, content, &layout, path);
            }
            // Several names of one file are the rare case.
            let mut copy = tempfile::tempfile().map_err(Error::file("create", folder))?;
            io::copy(content, &mut copy).map_err(Error::file("read", path))?;
            for name in &names {
                copy.rewind().map_err(Error::file("read", path))?;
                read_part(name, &mut copy, &layout, path)?;
            }
            Ok(())
        })?;
    }
    if layout.index()?.manifests.is_empty() {
        return Err(Error::Missing {
            what: "an image".to_owned(),
            place: path.display().to_string(),
            hint: ": it is not an OCI archive (is it a docker-archive?)".to_owned(),
        });
    }
    Ok(layout)
}

/// Stores a file of an OCI archive if it belongs to the layout.
fn read_part(name: &str, content: &mut dyn Read, layout: &Layout, path: &Path) -> Result<(), Error> {
    if name == "index.json" {
        let index = layout.root().join(name);
        return fs::write(&index, document(content, path)?).map_err(Error::file("write", &index));
    }
    let blob = name.strip_prefix("blobs/").map(|blob| blob.replacen('/', ":", 1));
    let Some(digest) = blob.and_then(|blob| blob.parse::<Digest>().ok()) else {
        return Ok(());
    };
    let mut file = layout.temporary()?;
    let mut reader = DigestReader::new(content, digest.algorithm());
    io::copy(&mut reader, &mut file).map_err(Error::file("read", path))?;
    let (actual, _) = reader.finish();
    if actual == digest {
        layout.persist(file, &digest)
    } else {
        layout.leave_out(digest, actual);
        Ok(())
    }
}
