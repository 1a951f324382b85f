//! The names of an archive's members, and links among them.

use std::collections::HashMap;

use crate::tarball::{Member, MemberKind};

/// Links that are followed from one name of an archive.
const LINKS: usize = 40;
/// Bytes of the longest name of a link, or of a name that is looked for among them.
const LINKED_NAME: usize = 4096;

/// The links of an archive by name. Their targets are names in the archive.
#[derive(Default)]
pub(super) struct Links(HashMap<String, String>);

impl Links {
    pub(super) fn add(&mut self, name: &str, member: &Member) {
        let target = match member.kind {
            // A link's target is relative to its directory, a hard link's to the archive.
            MemberKind::Symlink if !member.link.starts_with(b"/") => {
                let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
                Some(clean_inside(&[folder.as_bytes(), b"/", &member.link].concat()))
            }
            MemberKind::Symlink | MemberKind::HardLink => Some(clean_inside(&member.link)),
            MemberKind::File | MemberKind::Directory | MemberKind::Special => None,
        };
        let target = target.filter(|target| name.len().max(target.len()) <= LINKED_NAME);
        self.0.extend(target.map(|target| (name.to_owned(), target)));
    }

    /// The name that a name leads to, with the links in its directories followed.
    pub(super) fn resolve(&self, name: &str) -> Option<String> {
        if self.0.is_empty() || name.len() > LINKED_NAME {
            return Some(name.to_owned());
        }
        let mut pending: Vec<&str> = name.rsplit('/').collect();
        let mut resolved = String::new();
        let mut followed = 0;
        while let Some(part) = pending.pop() {
            if part.is_empty() {
                continue;
            }
            if !resolved.is_empty() {
                resolved.push('/');
            }
            resolved.push_str(part);
            if let Some(target) = self.0.get(&resolved) {
                followed += 1;
                if followed > LINKS {
                    return None;
                }
                // Targets are clean and relative to the archive.
                resolved.clear();
                pending.extend(target.rsplit('/'));
            }
        }
        Some(resolved)
    }

    /// The links whose names are wanted, by the name that they lead to.
    pub(super) fn aliases(&self, is_wanted: impl Fn(&str) -> bool) -> HashMap<String, Vec<&str>> {
        let mut aliases: HashMap<String, Vec<&str>> = HashMap::new();
        for link in self.0.keys().filter(|link| is_wanted(link)) {
            if let Some(target) = self.resolve(link) {
                aliases.entry(target).or_default().push(link);
            }
        }
        aliases
    }
}

/// The name of a member without `.` and `..`. `None` if it leads out of the archive.
pub(super) fn clean(name: &[u8]) -> Option<String> {
    let (name, is_outside) = normalized(name);
    (!is_outside).then_some(name)
}

/// As [`clean`]. The directory above the root is the root, as for a link in a directory with its own root.
fn clean_inside(name: &[u8]) -> String {
    normalized(name).0
}

/// A name without `.` and `..`, and true if it leads out of the archive.
fn normalized(name: &[u8]) -> (String, bool) {
    let name = String::from_utf8_lossy(name);
    let (mut parts, mut is_outside) = (Vec::new(), false);
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => is_outside |= parts.pop().is_none(),
            part => parts.push(part),
        }
    }
    (parts.join("/"), is_outside)
}
