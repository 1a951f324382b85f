//! The entries of a layer's tar stream, with their names cleaned.

use std::io::Read;

use super::limits::Limits;
use crate::error::Error;
use crate::tarball::{self, Member, MemberKind};

/// One entry, its names cleaned: relative, without `.` and `..`, separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub path: String,
    pub kind: Kind,
    /// The permission bits, with the setuid and setgid bits.
    pub mode: u32,
    /// True if it has file capabilities.
    pub has_capabilities: bool,
}

impl Entry {
    pub fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File {
        size: u64,
    },
    /// Another name of an earlier entry of any layer. The path is cleaned.
    HardLink(String),
    /// The target as written.
    Symlink(String),
    /// A device, a pipe: nothing we could use or would make.
    Special,
}

/// Calls `visit` for each entry with its number in the layer and its content.
pub(super) fn for_each(
    stream: &mut dyn Read,
    limits: &Limits,
    what: &str,
    mut visit: impl FnMut(usize, Entry, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut number = 0;
    tarball::for_each(stream, what, |member, content| {
        let Some(entry) = interpret(&member, limits, what)? else {
            return Ok(());
        };
        visit(number, entry, content)?;
        number += 1;
        if number > limits.entries {
            return Err(refused(what, format!("it has more than {} entries", limits.entries)));
        }
        Ok(())
    })
}

fn interpret(member: &Member, limits: &Limits, what: &str) -> Result<Option<Entry>, Error> {
    let path = clean(&member.path, limits, what)?;
    let kind = match member.kind {
        MemberKind::Directory => Kind::Directory,
        MemberKind::File => Kind::File { size: member.size },
        MemberKind::HardLink => Kind::HardLink(clean(&member.link, limits, what)?),
        MemberKind::Symlink => Kind::Symlink(text(&member.link, limits, what)?),
        MemberKind::Special => Kind::Special,
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
        mode: member.mode,
        has_capabilities: member.has_capabilities,
    }))
}

fn text(bytes: &[u8], limits: &Limits, what: &str) -> Result<String, Error> {
    if bytes.len() > limits.path_bytes {
        return Err(refused(
            what,
            format!("a name of {} bytes is longer than any system allows", bytes.len()),
        ));
    }
    let text = utf8(bytes);
    if text.contains('\0') {
        return Err(refused(what, format!("the name {text:?} contains a NUL")));
    }
    Ok(text)
}

/// A name as UTF-8. Each byte that is not part of UTF-8 becomes a character of the private use area, U+F780 to U+F7FF, so
/// that different names stay different.
fn utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let escaped = chunk
            .invalid()
            .iter()
            .filter_map(|byte| char::from_u32(0xf700 + u32::from(*byte)));
        text.extend(escaped);
    }
    text
}

/// A name relative to the image's root. `a/../b` is `b`, as for other tools. A name that leads out of the root is refused.
fn clean(bytes: &[u8], limits: &Limits, what: &str) -> Result<String, Error> {
    let text = text(bytes, limits, what)?;
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(refused(what, format!("the name {text:?} leads out of the image")));
                }
            }
            part => parts.push(part),
        }
        if parts.len() > limits.depth {
            return Err(refused(
                what,
                format!("the name {text:?} is more than {} directories deep", limits.depth),
            ));
        }
    }
    Ok(parts.join("/"))
}

fn refused(what: &str, reason: String) -> Error {
    Error::Refused {
        what: what.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_different_and_inside() {
        let clean = |bytes: &[u8]| clean(bytes, &Limits::default(), "test");
        for (name, expected) in [
            (&b"a/../b"[..], "b"),
            (b"./a/b/../../c/", "c"),
            (b"/a//./b", "a/b"),
            (b"a/..", ""),
            (b"a\xff\xe9b", "a\u{f7ff}\u{f7e9}b"),
            (b"\xc3\xa9", "\u{e9}"),
        ] {
            assert_eq!(clean(name).unwrap(), expected);
        }
        for name in [&b".."[..], b"a/../../b", b"/../b", b"a\0b"] {
            assert!(clean(name).is_err(), "{name:?}");
        }
    }
}
