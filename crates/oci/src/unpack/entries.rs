//! The entries of a layer's tar stream, with the extensions for long names read within bounds.
//!
//! The tar crate reads extension records into memory at whatever size the archive claims, so it is asked for the raw
//! records here and the few extensions that matter are interpreted by hand.

use std::io::{self, Read};

use super::limits::Limits;
use crate::error::Error;

/// Extension records are a few hundred bytes; no name or attribute needs more.
const EXTENSION_LIMIT: u64 = 1 << 20;

/// One entry, its names cleaned: relative, without `.` and `..`, separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub path: String,
    pub kind: Kind,
    /// The permission bits, with those for the owner's and the group's rights.
    pub mode: u32,
    /// True if it has capabilities of its own.
    pub has_capabilities: bool,
}

impl Entry {
    pub fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File {
        size: u64,
    },
    /// Another name of an earlier entry of any layer; the path is cleaned.
    HardLink(String),
    /// The target as written.
    Symlink(String),
    /// A device, a pipe: nothing we could use or would make.
    Special,
}

#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    sparse: bool,
    capabilities: bool,
    size: Option<u64>,
}

/// Calls `visit` for each entry with its number in the layer and its content.
pub(super) fn for_each(
    stream: &mut dyn Read,
    limits: &Limits,
    what: &str,
    mut visit: impl FnMut(usize, Entry, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let broken = |source: io::Error| Error::Refused {
        what: what.to_owned(),
        reason: source.to_string(),
    };
    let mut archive = tar::Archive::new(stream);
    let mut extensions = Extensions::default();
    let mut number = 0;
    for raw in archive.entries().map_err(broken)?.raw(true) {
        let mut raw = raw.map_err(broken)?;
        if extend(&mut extensions, &mut raw, what)? {
            continue;
        }
        let extensions = std::mem::take(&mut extensions);
        let Some(entry) = interpret(&raw, extensions, limits, what)? else {
            continue;
        };
        visit(number, entry, &mut raw)?;
        number += 1;
        if number > limits.entries {
            return Err(refused(what, format!("it has more than {} entries", limits.entries)));
        }
    }
    Ok(())
}

/// Takes up an extension record; false if the entry is none.
fn extend<R: Read>(extensions: &mut Extensions, raw: &mut tar::Entry<'_, R>, what: &str) -> Result<bool, Error> {
    let kind = raw.header().entry_type();
    if !(kind.is_gnu_longname()
        || kind.is_gnu_longlink()
        || kind.is_pax_local_extensions()
        || kind.is_pax_global_extensions())
    {
        return Ok(false);
    }
    let size = raw
        .header()
        .entry_size()
        .map_err(|error| refused(what, error.to_string()))?;
    if size > EXTENSION_LIMIT {
        return Err(refused(what, format!("an extension record claims {size} bytes")));
    }
    let mut bytes = Vec::new();
    raw.read_to_end(&mut bytes)
        .map_err(|error| refused(what, error.to_string()))?;
    let text = |bytes: Vec<u8>| bytes.split(|byte| *byte == 0).next().map(<[u8]>::to_vec);
    if kind.is_gnu_longname() {
        extensions.path = text(bytes);
    } else if kind.is_gnu_longlink() {
        extensions.link = text(bytes);
    } else if kind.is_pax_local_extensions() {
        for record in tar::PaxExtensions::new(&bytes) {
            let record = record.map_err(|error| refused(what, error.to_string()))?;
            match record.key_bytes() {
                b"path" => extensions.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => extensions.link = Some(record.value_bytes().to_vec()),
                b"size" => extensions.size = record.value().ok().and_then(|value| value.parse().ok()),
                b"SCHILY.xattr.security.capability" => extensions.capabilities = true,
                key if key.starts_with(b"GNU.sparse.") => extensions.sparse = true,
                _ => {}
            }
        }
    }
    Ok(true)
}

fn interpret<R: Read>(
    raw: &tar::Entry<'_, R>,
    extensions: Extensions,
    limits: &Limits,
    what: &str,
) -> Result<Option<Entry>, Error> {
    let header = raw.header();
    let size = header.entry_size().map_err(|error| refused(what, error.to_string()))?;
    let path = extensions.path.unwrap_or_else(|| header.path_bytes().into_owned());
    let path = clean(&path, limits, what)?;
    if extensions.sparse || header.entry_type().is_gnu_sparse() {
        return Err(refused(
            what,
            format!("{path:?} is stored as a sparse file, which image layers do not use"),
        ));
    }
    if extensions.size.is_some_and(|extended| extended != size) {
        return Err(refused(what, format!("{path:?} has two different sizes")));
    }
    if size > limits.file_bytes {
        return Err(refused(
            what,
            format!("{path:?} has {size} bytes, at most {} are read", limits.file_bytes),
        ));
    }
    let link = || {
        extensions
            .link
            .clone()
            .or_else(|| header.link_name_bytes().map(|name| name.into_owned()))
            .unwrap_or_default()
    };
    let kind = match header.entry_type() {
        tar::EntryType::Directory => Kind::Directory,
        tar::EntryType::Regular | tar::EntryType::Continuous => Kind::File { size },
        tar::EntryType::Link => Kind::HardLink(clean(&link(), limits, what)?),
        tar::EntryType::Symlink => Kind::Symlink(text(&link(), limits, what)?),
        _ => Kind::Special,
    };
    // The root itself is skipped, except when an entry tries to replace it.
    if path.is_empty() {
        return if kind == Kind::Directory {
            Ok(None)
        } else {
            Err(refused(what, "it replaces its own root".to_owned()))
        };
    }
    Ok(Some(Entry {
        path,
        kind,
        mode: header.mode().unwrap_or_default(),
        has_capabilities: extensions.capabilities,
    }))
}

fn text(bytes: &[u8], limits: &Limits, what: &str) -> Result<String, Error> {
    if bytes.len() > limits.path_bytes {
        return Err(refused(
            what,
            format!("a name of {} bytes is longer than any system allows", bytes.len()),
        ));
    }
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| {
        refused(
            what,
            format!("the name {:?} is not UTF-8", String::from_utf8_lossy(bytes)),
        )
    })?;
    if text.contains('\0') {
        return Err(refused(what, format!("the name {text:?} holds a NUL")));
    }
    Ok(text)
}

/// A name relative to the image's root. `..` cannot lead out of it: such a name is refused, as is everything that
/// means nothing good.
fn clean(bytes: &[u8], limits: &Limits, what: &str) -> Result<String, Error> {
    let text = text(bytes, limits, what)?;
    let parts: Vec<&str> = text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(refused(what, format!("the name {text:?} leads out of the image")));
    }
    if parts.len() > limits.depth {
        return Err(refused(
            what,
            format!("the name {text:?} is more than {} directories deep", limits.depth),
        ));
    }
    Ok(parts.join("/"))
}

fn refused(what: &str, reason: String) -> Error {
    Error::Refused {
        what: what.to_owned(),
        reason,
    }
}
