//! The file system that the layers of an image make together, without any content: a map from names to what they are.
//!
//! Building it in memory first means that nothing is ever written because of an entry that a later layer takes back,
//! and that links are resolved here, inside the image, and never by the system this runs on.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::entries::{Entry, Kind};
use super::limits::Limits;
use crate::error::Error;

/// Whiteouts (OCI image layer specification): `.wh.<name>` hides a name of lower layers, this one all names of a
/// directory.
const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

/// Following links may put together names of this many bytes in all: far beyond any real image, and a second's work.
const RESOLVING_LIMIT: u64 = 2 << 30;

/// Where a file's bytes are: which entry of which layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub layer: u32,
    pub entry: u32,
}

/// The node at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File {
        place: Place,
        size: u64,
        executable: bool,
    },
    Symlink(String),
    /// A device or a pipe. It hides what lower layers have, and is never made.
    Special,
}

/// All names of an image.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
    /// Names set by the layer that is being laid over: its whiteouts do not hide its own entries.
    fresh: BTreeSet<String>,
    /// Names below which this layer's whiteouts have been applied already.
    hidden: BTreeSet<String>,
    /// Bytes of names that were put together while links were followed.
    resolving: Cell<u64>,
    name_bytes: usize,
    entries: usize,
}

impl Tree {
    /// Begins with the next layer.
    pub(super) fn next_layer(&mut self) {
        self.fresh.clear();
        self.hidden.clear();
    }

    /// Lays an entry over what is there.
    pub(super) fn apply(&mut self, place: Place, mut entry: Entry, limits: &Limits, what: &str) -> Result<(), Error> {
        let refused = |reason: String| Error::Refused {
            what: what.to_owned(),
            reason,
        };
        self.entries += 1;
        self.name_bytes += entry.path.len();
        if self.entries > limits.entries || self.name_bytes > limits.name_bytes {
            return Err(refused(format!(
                "the image has more than {} entries or too long names",
                limits.entries
            )));
        }
        entry.path = self.real_place(&entry.path, limits);
        let (parent, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        if name == OPAQUE {
            self.hide_below(parent);
            return Ok(());
        }
        if let Some(hidden) = name.strip_prefix(WHITEOUT) {
            // `.wh.` alone, or one that would hide `.` or `..`, names nothing.
            if matches!(hidden, "" | "." | "..") {
                return Err(refused(format!(
                    "the whiteout {:?} hides nothing that could be there",
                    entry.path
                )));
            }
            let hidden = if parent.is_empty() {
                hidden.to_owned()
            } else {
                format!("{parent}/{hidden}")
            };
            self.hide_below(&hidden);
            if !self.fresh.contains(&hidden) {
                self.nodes.remove(&hidden);
            }
            return Ok(());
        }
        let node = match entry.kind {
            Kind::Directory => Node::Directory,
            Kind::File { size } => Node::File {
                place,
                size,
                executable: entry.is_executable(),
            },
            Kind::Symlink(target) => {
                self.name_bytes += target.len();
                Node::Symlink(target)
            }
            Kind::HardLink(target) => {
                // Directories in the target's name may be links.
                let target = self.real_place(&target, limits);
                match self.nodes.get(&target) {
                    Some(node) if *node != Node::Directory => node.clone(),
                    _ => {
                        return Err(refused(format!(
                            "{:?} is a hard link to {target:?}, which is not a file of the image",
                            entry.path
                        )));
                    }
                }
            }
            Kind::Special => Node::Special,
        };
        self.place_parents(&entry.path, limits)?;
        if !(node == Node::Directory && self.nodes.get(&entry.path) == Some(&Node::Directory)) {
            // A file in place of a directory takes everything below with it. A directory in place of a file the file.
            if node != Node::Directory {
                self.remove_below(&entry.path);
            }
            self.nodes.insert(entry.path.clone(), node);
        }
        self.fresh.insert(entry.path);
        Ok(())
    }

    /// Where an entry belongs when a directory above it is a link, such as `lib -> usr/lib`: below the link's target,
    /// as container runtimes do it, but always inside the image.
    fn real_place(&self, path: &str, limits: &Limits) -> String {
        let Some((parent, name)) = path.rsplit_once('/') else {
            return path.to_owned();
        };
        let through_link = path
            .match_indices('/')
            .filter_map(|(end, _)| path.get(..end))
            .any(|above| matches!(self.nodes.get(above), Some(Node::Symlink(_))));
        match through_link.then(|| self.resolve(parent, limits)).flatten() {
            Some(real) if real.is_empty() => name.to_owned(),
            Some(real) if self.nodes.get(&real) == Some(&Node::Directory) => format!("{real}/{name}"),
            _ => path.to_owned(),
        }
    }

    /// Makes the directories above a name. A file, or a link that leads nowhere, in the way is replaced.
    fn place_parents(&mut self, path: &str, limits: &Limits) -> Result<(), Error> {
        for (end, _) in path.match_indices('/') {
            let Some(parent) = path.get(..end) else { continue };
            match self.nodes.get(parent) {
                Some(Node::Directory) => {}
                _ => {
                    self.name_bytes += parent.len();
                    if self.name_bytes > limits.name_bytes {
                        let reason = "its names take too much room".to_owned();
                        return Err(Error::Refused {
                            what: "image".to_owned(),
                            reason,
                        });
                    }
                    self.nodes.insert(parent.to_owned(), Node::Directory);
                }
            }
        }
        Ok(())
    }

    /// Hides what lower layers have below a name.
    fn hide_below(&mut self, path: &str) {
        // Once is enough: nothing of a lower layer comes back. A layer of whiteouts only would take quadratic time.
        if !self.hidden.insert(path.to_owned()) {
            return;
        }
        let names: Vec<String> = self
            .below(path)
            .filter(|name| !self.fresh.contains(*name))
            .map(str::to_owned)
            .collect();
        for name in names {
            // A directory with entries of this layer must stay.
            let prefix = format!("{name}/");
            let needed = self
                .fresh
                .range(prefix.clone()..)
                .next()
                .is_some_and(|next| next.starts_with(&prefix));
            if !needed {
                self.nodes.remove(&name);
            }
        }
    }

    fn remove_below(&mut self, path: &str) {
        let names: Vec<String> = self.below(path).map(str::to_owned).collect();
        for name in names {
            self.nodes.remove(&name);
        }
    }

    /// All names below a directory, at any depth.
    pub(super) fn below<'t>(&'t self, path: &str) -> impl Iterator<Item = &'t str> + use<'t> {
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        self.nodes
            .range(prefix.clone()..)
            .map(|(name, _)| name.as_str())
            .take_while(move |name| name.starts_with(&prefix))
    }

    /// The node at a name, without following links.
    pub(super) fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// The name of a node as the tree stores it.
    pub(super) fn name(&self, path: &str) -> Option<&str> {
        self.nodes.get_key_value(path).map(|(name, _)| name.as_str())
    }

    /// Follows links from a name to a file or directory, inside the image: an absolute target starts at the image's
    /// root and `..` does not lead out of it. The empty name is the root.
    pub(super) fn resolve(&self, path: &str, limits: &Limits) -> Option<String> {
        let mut pending: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut resolved: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = pending.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    resolved.pop();
                    continue;
                }
                _ => resolved.push(part),
            }
            let name = resolved.join("/");
            self.resolving.set(self.resolving.get() + name.len() as u64);
            if self.resolving.get() > RESOLVING_LIMIT {
                return None;
            }
            match self.nodes.get(&name)? {
                Node::Symlink(target) => {
                    links += 1;
                    if links > limits.links || pending.len() > limits.depth * 4 {
                        return None;
                    }
                    resolved.pop();
                    if target.starts_with('/') {
                        resolved.clear();
                    }
                    pending.extend(target.rsplit('/').map(str::to_owned));
                }
                Node::File { .. } | Node::Special if pending.iter().any(|part| !matches!(part.as_str(), "" | ".")) => {
                    return None;
                }
                _ => {}
            }
        }
        Some(resolved.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(layers: &[&[(&str, Kind)]]) -> Tree {
        let mut tree = Tree::default();
        for (layer, entries) in layers.iter().enumerate() {
            tree.next_layer();
            for (number, (path, kind)) in entries.iter().enumerate() {
                let place = Place {
                    layer: layer as u32,
                    entry: number as u32,
                };
                let entry = Entry {
                    path: (*path).to_owned(),
                    kind: kind.clone(),
                    mode: 0o644,
                    has_capabilities: false,
                };
                tree.apply(place, entry, &Limits::default(), "test").unwrap();
            }
        }
        tree
    }

    fn names(tree: &Tree) -> Vec<&str> {
        tree.below("").collect()
    }

    const FILE: Kind = Kind::File { size: 1 };

    #[test]
    fn whiteouts_hide_lower_layers_only() {
        let tree = tree(&[
            &[("a/old", FILE), ("a/kept", FILE), ("b/x", FILE), ("c", FILE)],
            &[
                ("a/.wh.old", FILE),
                ("b/new", FILE),
                ("b/.wh..wh..opq", FILE),
                ("c", FILE),
                (".wh.c", FILE),
            ],
        ]);
        assert_eq!(names(&tree), ["a", "a/kept", "b", "b/new", "c"]);
    }

    #[test]
    fn a_whiteout_of_a_directory_takes_all_of_it() {
        let tree = tree(&[&[("a/b/c", FILE), ("ab", FILE)], &[(".wh.a", FILE)]]);
        assert_eq!(names(&tree), ["ab"]);
    }

    #[test]
    fn entries_below_a_link_go_where_the_link_leads() {
        let tree = tree(&[
            &[("usr/lib/a", FILE), ("lib", Kind::Symlink("usr/lib".to_owned()))],
            &[("lib/b", FILE), ("lib/.wh.a", FILE)],
        ]);
        assert_eq!(names(&tree), ["lib", "usr", "usr/lib", "usr/lib/b"]);
    }

    #[test]
    fn kinds_replace_each_other() {
        let tree = tree(&[&[("a/b", FILE), ("c", FILE)], &[("a", FILE), ("c/d", FILE)]]);
        assert_eq!(names(&tree), ["a", "c", "c/d"]);
        assert!(matches!(
            tree.get("a"),
            Some(Node::File {
                place: Place { layer: 1, .. },
                ..
            })
        ));
    }

    #[test]
    fn links_are_resolved_inside_the_image() {
        let link = |target: &str| Kind::Symlink(target.to_owned());
        let tree = tree(&[&[
            ("data/configs/x", FILE),
            ("configs", link("/data/configs")),
            ("up", link("../../../data")),
            ("loop", link("loop")),
            ("deep", link("deep/deep/deep")),
            ("dangling", link("nowhere")),
        ]]);
        let limits = Limits::default();
        assert_eq!(tree.resolve("configs/x", &limits).as_deref(), Some("data/configs/x"));
        assert_eq!(tree.resolve("up/configs", &limits).as_deref(), Some("data/configs"));
        assert_eq!(tree.resolve("/", &limits).as_deref(), Some(""));
        for path in ["loop", "deep", "dangling", "data/configs/x/y"] {
            assert_eq!(tree.resolve(path, &limits), None, "{path}");
        }
    }
}
