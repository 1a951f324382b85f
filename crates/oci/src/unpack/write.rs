//! The second pass: from the tree and the layers to files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::decompress::{Budget, LayerReader, total_size};
use super::entries;
use super::limits::Limits;
use super::tree::{Node, Place, Tree};
use super::{Error, Item, Unpacked};
use crate::layout::{Image, Layout};
use crate::spec::Descriptor;

/// The entries to write. All paths are relative to the target.
#[derive(Default)]
pub(super) struct Plan {
    directories: BTreeSet<String>,
    /// Content and the names it gets.
    files: BTreeMap<Place, Output>,
    /// Links and what they lead to, made at the very end. Only when everything is unpacked.
    links: BTreeMap<String, String>,
    left_out: Vec<String>,
    names: usize,
}

struct Output {
    names: Vec<String>,
    size: u64,
    executable: bool,
}

impl Plan {
    pub(super) fn new(tree: &Tree, layers: &[Descriptor], selection: &[&str], limits: &Limits) -> Result<Self, Error> {
        let mut plan = Self::default();
        if selection.is_empty() {
            plan.take_reachable(tree, &[""], limits)?;
        }
        for wanted in selection {
            let name: Vec<&str> = wanted
                .split('/')
                .filter(|part| !matches!(*part, "" | "." | ".."))
                .collect();
            if let Some(real) = tree.resolve(wanted, limits) {
                plan.take(tree, &real, &name.join("/"), limits, limits.links)?;
            }
        }
        plan.check_sizes(layers, limits)?;
        Ok(plan)
    }

    /// The plan for the files and directories with these names, with everything below them and all that their links lead to.
    pub(super) fn reachable(
        tree: &Tree,
        layers: &[Descriptor],
        names: &[&str],
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut plan = Self::default();
        plan.take_reachable(tree, names, limits)?;
        plan.check_sizes(layers, limits)?;
        Ok(plan)
    }

    /// Bytes of the content that is written. Other names of a file are links to it.
    fn bytes(&self) -> u64 {
        let sizes = self.files.values().map(|output| output.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Checks what will be written. The holes of sparse files count: a layer yields no more than it could without them.
    fn check_sizes(&self, layers: &[Descriptor], limits: &Limits) -> Result<(), Error> {
        let refused = |what: String, reason: String| Err(Error::Refused { what, reason });
        let mut of_layers: BTreeMap<u32, u64> = BTreeMap::new();
        for (place, output) in &self.files {
            if output.size > limits.file_bytes {
                let name = output.names.first().map(String::as_str).unwrap_or_default();
                let reason = format!(
                    "it has {} bytes, at most {} are written",
                    output.size, limits.file_bytes
                );
                return refused(format!("file {name:?}"), reason);
            }
            let sum = of_layers.entry(place.layer).or_default();
            *sum = sum.saturating_add(output.size);
        }
        for (index, bytes) in of_layers {
            let Some(layer) = layers.get(index as usize) else {
                continue;
            };
            let allowed = limits.unpacked_layer(layer.size);
            if bytes > allowed {
                let reason = format!("its files have {bytes} bytes, a layer of this size may have {allowed}");
                return refused(format!("layer {}", layer.digest), reason);
            }
        }
        let total = self.bytes();
        let allowed = limits.written_bytes.min(limits.unpacked_image(total_size(layers)));
        if total > allowed {
            let reason = format!("its files have {total} bytes, at most {allowed} are written");
            return refused("image".to_owned(), reason);
        }
        Ok(())
    }

    /// Adds names with everything below them. Links are kept, and their targets are added in the same way.
    fn take_reachable(&mut self, tree: &Tree, names: &[&str], limits: &Limits) -> Result<(), Error> {
        let mut pending: Vec<String> = names.iter().rev().filter_map(|name| plain(name)).collect();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        // Directories of which everything is taken.
        let mut complete: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = pending.pop() {
            if complete.contains("") || above(&name).any(|directory| complete.contains(directory)) {
                continue;
            }
            let link = above(&name).find(|above| matches!(tree.get(above), Some(Node::Symlink(_))));
            if let Some(link) = link.and_then(|link| tree.name(link)) {
                if taken.insert(link) {
                    self.take_link(tree, link, limits);
                }
                if let (Some(real), Some(rest)) = (self.links.get(link), name.strip_prefix(link)) {
                    pending.push(format!("{real}{rest}").trim_start_matches('/').to_owned());
                }
                continue;
            }
            for name in tree.name(&name).into_iter().chain(tree.below(&name)) {
                if !taken.insert(name) {
                    continue;
                }
                if matches!(tree.get(name), Some(Node::Symlink(_))) {
                    pending.extend(self.take_link(tree, name, limits));
                } else {
                    self.take_node(tree, name, name, limits)?;
                }
            }
            complete.insert(name);
        }
        Ok(())
    }

    /// Adds a link. Returns its target, or `None` if it leads nowhere.
    fn take_link(&mut self, tree: &Tree, name: &str, limits: &Limits) -> Option<String> {
        let Some(real) = tree.resolve(name, limits) else {
            self.left_out.push(name.to_owned());
            return None;
        };
        self.directories.extend(parent(name).map(str::to_owned));
        self.links.insert(name.to_owned(), real.clone());
        Some(real)
    }

    /// Adds a name with everything below it. Links are replaced by their targets, which may be outside the
    /// selection. `links` bounds how many directory links may be nested.
    fn take(&mut self, tree: &Tree, real: &str, output: &str, limits: &Limits, links: usize) -> Result<(), Error> {
        self.take_node(tree, real, output, limits)?;
        for name in tree.below(real) {
            let below = name.get(real.len()..).unwrap_or_default().trim_start_matches('/');
            let output = if output.is_empty() {
                below.to_owned()
            } else {
                format!("{output}/{below}")
            };
            if !matches!(tree.get(name), Some(Node::Symlink(_))) {
                self.take_node(tree, name, &output, limits)?;
                continue;
            }
            match tree.resolve(name, limits) {
                // A link to a directory above itself would never end.
                Some(target) if links > 0 && !is_below(name, &target) => {
                    self.take(tree, &target, &output, limits, links - 1)?;
                }
                _ => self.left_out.push(name.to_owned()),
            }
        }
        Ok(())
    }

    fn take_node(&mut self, tree: &Tree, name: &str, output: &str, limits: &Limits) -> Result<(), Error> {
        self.names += 1;
        if self.names > limits.entries {
            let reason = format!("its links make more than {} files of it", limits.entries);
            return Err(Error::Refused {
                what: "image".to_owned(),
                reason,
            });
        }
        let parent = parent(output);
        match tree.get(name) {
            Some(Node::File {
                place,
                size,
                executable,
            }) => {
                self.directories.extend(parent.map(str::to_owned));
                let new = || Output {
                    names: Vec::new(),
                    size: *size,
                    executable: *executable,
                };
                self.files
                    .entry(*place)
                    .or_insert_with(new)
                    .names
                    .push(output.to_owned());
            }
            Some(Node::Directory) => {
                self.directories.insert(output.to_owned());
            }
            // The root has no node.
            None if name.is_empty() => {}
            _ => self.left_out.push(name.to_owned()),
        }
        Ok(())
    }

    pub(super) fn write(
        self,
        layout: &Layout,
        image: &Image,
        target: &Path,
        limits: &Limits,
    ) -> Result<Unpacked, Error> {
        prepare(target)?;
        crate::space::check(target, self.bytes(), "image")?;
        for directory in &self.directories {
            let path = target.join(directory);
            fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        }
        let mut report = Unpacked {
            left_out: self.left_out.clone(),
            ..Unpacked::default()
        };
        self.for_each_file(layout, image, limits, |output, content| {
            write_file(target, output, content, &mut report)
        })?;
        for (name, real) in &self.links {
            let path = target.join(name);
            symlink(relative(name, real), &path).map_err(Error::file("create", &path))?;
        }
        Ok(report)
    }

    /// Calls `visit` for each directory, file and link. Nothing is written.
    pub(super) fn for_each_path(
        &self,
        layout: &Layout,
        image: &Image,
        limits: &Limits,
        mut visit: impl FnMut(&[String], Item<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for directory in &self.directories {
            visit(std::slice::from_ref(directory), Item::Directory)?;
        }
        for (name, real) in &self.links {
            visit(std::slice::from_ref(name), Item::Link(relative(name, real)))?;
        }
        self.for_each_file(layout, image, limits, |output, content| {
            let executable = output.executable;
            visit(&output.names, Item::File { executable, content })
        })
    }

    /// Calls `visit` for each file with its content.
    fn for_each_file(
        &self,
        layout: &Layout,
        image: &Image,
        limits: &Limits,
        mut visit: impl FnMut(&Output, &mut dyn Read) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut budget = Budget::of_image(layout, image, limits);
        for (index, layer) in image.manifest.layers.iter().enumerate() {
            let number = index as u32;
            let wanted = |entry: u32| self.files.get(&Place { layer: number, entry });
            let range = Place {
                layer: number,
                entry: 0,
            }..Place {
                layer: number.saturating_add(1),
                entry: 0,
            };
            if self.files.range(range).next().is_none() {
                continue;
            }
            let what = format!("layer {}", layer.digest);
            let mut reader = LayerReader::open(layout, layer, limits, &mut budget)?;
            entries::for_each(&mut reader, limits, &what, |entry, _, content| {
                match wanted(u32::try_from(entry).unwrap_or(u32::MAX)) {
                    Some(output) => visit(output, content),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }
}

/// The target must be a directory with nothing in it: what is there already could lead writes elsewhere.
fn prepare(target: &Path) -> Result<(), Error> {
    fs::create_dir_all(target).map_err(Error::file("create", target))?;
    let mut entries = fs::read_dir(target).map_err(Error::file("read", target))?;
    if entries.next().is_some() {
        return Err(Error::Input(format!(
            "{} is not empty; unpack into an empty directory",
            target.display()
        )));
    }
    Ok(())
}

fn write_file(target: &Path, output: &Output, content: &mut dyn Read, report: &mut Unpacked) -> Result<(), Error> {
    let Some((first, others)) = output.names.split_first() else {
        return Ok(());
    };
    let path = target.join(first);
    let mode = if output.executable { 0o755 } else { 0o644 };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&path)
        .map_err(Error::file("create", &path))?;
    let written = io::copy(content, &mut file).map_err(Error::file("write", &path))?;
    if written != output.size {
        return Err(Error::Size {
            what: format!("file {first}"),
            expected: output.size,
            actual: written,
        });
    }
    report.files += 1;
    report.bytes += written;
    for other in others {
        let other = target.join(other);
        if fs::hard_link(&path, &other).is_err() {
            let mut source = File::open(&path).map_err(Error::file("read", &path))?;
            let mut copy = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&other)
                .map_err(Error::file("create", &other))?;
            report.bytes += io::copy(&mut source, &mut copy).map_err(Error::file("write", &other))?;
        }
        report.files += 1;
    }
    Ok(())
}

fn is_below(name: &str, directory: &str) -> bool {
    directory.is_empty() || name == directory || name.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The path from a link to what it leads to.
fn relative(link: &str, target: &str) -> PathBuf {
    let above = link.matches('/').count();
    let mut path: PathBuf = std::iter::repeat_n("..", above).collect();
    if target.is_empty() && above == 0 {
        path.push(".");
    }
    path.push(target);
    path
}

fn parent(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(parent, _)| parent)
}

/// The directories above a name, from the highest one, and the name.
fn above(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.match_indices('/').map(|(end, _)| end);
    ends.chain([name.len()]).filter_map(|end| name.get(..end))
}

/// A name without empty parts. `None` if it leads up.
fn plain(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    (!parts.contains(&"..")).then(|| parts.join("/"))
}
