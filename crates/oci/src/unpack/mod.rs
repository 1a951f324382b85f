//! Unpacks untrusted images.
//!
//! Two passes are made. The first reads all layers and merges their names in memory, with whiteouts applied and
//! links kept as text. The second writes the files that are left, and only those asked for, into an empty directory.
//! Nothing is written while links exist on disk, so no entry can lead a later one out of the directory; devices and
//! pipes are never made; owners, times and special permission bits are dropped. Everything is bounded by [`Limits`].

mod decompress;
mod entries;
mod layers;
mod limits;
mod tree;
mod write;

pub use layers::{LayerEntry, LayerEntryKind, for_each_entry};
pub use limits::Limits;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::layout::{Image, Layout};
use super::spec::Descriptor;
pub(crate) use decompress::{Budget, LayerReader};
use tree::{Place, Tree};

/// The result of unpacking an image: omitted and written files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unpacked {
    /// Number of files written.
    pub files: usize,
    /// Bytes written.
    pub bytes: u64,
    /// Entries that were left out: devices, pipes, links that lead nowhere.
    pub left_out: Vec<String>,
}

/// Unpacks an image into a directory, which must be empty or not exist. Bytes of names that are not UTF-8 become characters
/// from U+F780 to U+F7FF.
///
/// `selection` names the directories and files wanted, as absolute paths in the image. They land at the same place
/// below `target`. An empty selection takes everything. A selected name that the image does not have is not an error: the
/// caller sees that it is not there.
pub fn unpack(
    layout: &Layout,
    image: &Image,
    target: &Path,
    selection: &[&str],
    limits: &Limits,
) -> Result<Unpacked, Error> {
    let tree = read_tree(layout, image, limits)?;
    let plan = write::Plan::new(&tree, &image.manifest.layers, selection, limits)?;
    plan.write(layout, image, target, limits)
}

/// Unpacks the files and directories with these names, with everything below them and all that links in them lead to. A
/// program that reads these names finds the same as after unpacking everything: [`unpack`] replaces links by their targets
/// instead. Names that lead up (`..`) and names that the image does not have are skipped.
///
/// # Errors
/// As of [`unpack`].
pub fn unpack_reachable(
    layout: &Layout,
    image: &Image,
    target: &Path,
    names: &[&str],
    limits: &Limits,
) -> Result<Unpacked, Error> {
    let tree = read_tree(layout, image, limits)?;
    let plan = write::Plan::reachable(&tree, &image.manifest.layers, names, limits)?;
    plan.write(layout, image, target, limits)
}

/// A part of an image that [`for_each_path`] visits.
pub(crate) enum Item<'i> {
    Directory,
    /// The relative path to its target.
    Link(PathBuf),
    File {
        executable: bool,
        content: &'i mut dyn Read,
    },
}

/// Calls `visit` for all that [`unpack`] would write, and writes nothing. A file with several names is visited once.
pub(crate) fn for_each_path(
    layout: &Layout,
    image: &Image,
    limits: &Limits,
    visit: impl FnMut(&[String], Item<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let tree = read_tree(layout, image, limits)?;
    let plan = write::Plan::reachable(&tree, &image.manifest.layers, &[""], limits)?;
    plan.for_each_path(layout, image, limits, visit)
}

/// The regular files of a tar archive with their clean paths. Everything else is left out. For untrusted archives that fit
/// into memory: at most [`Limits::written_bytes`] are kept.
///
/// # Errors
/// [`Error::Refused`] for an archive that is broken or exceeds a limit.
pub fn files(archive: &mut dyn Read, limits: &Limits) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let what = "archive";
    let mut files = BTreeMap::new();
    let mut kept = 0_u64;
    entries::for_each(archive, limits, what, |_, entry, content| {
        let entries::Kind::File { size } = entry.kind else {
            return Ok(());
        };
        kept = kept.saturating_add(size);
        if kept > limits.written_bytes || size > limits.file_bytes {
            return Err(Error::Refused {
                what: what.to_owned(),
                reason: format!("its files have more than {} bytes", limits.written_bytes),
            });
        }
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(|error| Error::Refused {
            what: what.to_owned(),
            reason: error.to_string(),
        })?;
        files.insert(entry.path, bytes);
        Ok(())
    })?;
    Ok(files)
}

fn read_tree(layout: &Layout, image: &Image, limits: &Limits) -> Result<Tree, Error> {
    let layers = &image.manifest.layers;
    if layers.len() > super::limits::LAYERS {
        return Err(Error::Refused {
            what: format!("image {}", image.descriptor.digest),
            reason: format!("it has {} layers, the limit is {}", layers.len(), super::limits::LAYERS),
        });
    }
    let mut tree = Tree::default();
    let mut budget = Budget::of_image(layout, image, limits);
    for (index, layer) in worth_reading(layers) {
        let what = format!("layer {}", layer.digest);
        let number = |value: usize| {
            u32::try_from(value).map_err(|_| Error::Refused {
                what: what.clone(),
                reason: "too many entries".to_owned(),
            })
        };
        tree.next_layer();
        let layer_number = number(index)?;
        read_layer(layout, layer, limits, &mut budget, |entry, item, _| {
            tree.apply(
                Place {
                    layer: layer_number,
                    entry: number(entry)?,
                },
                item,
                limits,
                &what,
            )
        })?;
    }
    Ok(tree)
}

/// The layers with their numbers, without those that need not be read: all that a layer does is done again where it occurs again, so
/// that nothing of it is seen between the first and the last time.
fn worth_reading(layers: &[Descriptor]) -> impl Iterator<Item = (usize, &Descriptor)> {
    let numbered = || layers.iter().enumerate();
    let first: BTreeMap<_, _> = numbered().rev().map(|(index, layer)| (&layer.digest, index)).collect();
    let last: BTreeMap<_, _> = numbered().map(|(index, layer)| (&layer.digest, index)).collect();
    layers
        .iter()
        .enumerate()
        .filter(move |(index, layer)| [first.get(&layer.digest), last.get(&layer.digest)].contains(&Some(index)))
}

/// Visits the entries of a layer, and checks its blob.
fn read_layer(
    layout: &Layout,
    layer: &Descriptor,
    limits: &Limits,
    budget: &mut Budget,
    visit: impl FnMut(usize, entries::Entry, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = LayerReader::open(layout, layer, limits, budget)?;
    let result = entries::for_each(&mut reader, limits, &format!("layer {}", layer.digest), visit);
    // If a blob does not match its digest, this explains all other errors.
    match (reader.verify(), result) {
        (Err(error @ (Error::Mismatch { .. } | Error::Size { .. })), _) | (_, Err(error)) => Err(error),
        (checked, Ok(())) => checked,
    }
}
