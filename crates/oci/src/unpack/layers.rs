//! The entries of each layer as they stand in it, for checks of what a layer changes.

use std::io::Read;

use super::entries::Kind;
use super::{Budget, Limits, read_layer, worth_reading};
use crate::error::Error;
use crate::layout::{Image, Layout};

/// An entry of a layer. Whiteouts are files with their names, as in the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerEntry<'e> {
    /// Relative, without `.` and `..`, separated by `/`.
    pub path: &'e str,
    /// The type of the entry.
    pub kind: LayerEntryKind<'e>,
    /// The permission bits, with the setuid and setgid bits.
    pub mode: u32,
    /// True if it has file capabilities (`security.capability`).
    pub has_capabilities: bool,
}

/// The type of a layer entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerEntryKind<'e> {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic or hard link with its target.
    Link(&'e str),
    /// A device or a pipe.
    Special,
}

/// Calls `visit` for each entry of each layer, from the lowest layer, with the number of the layer from 0 and the content. A layer that
/// occurs more than twice is read the first and the last time.
///
/// # Errors
/// Of `visit`, and for a layer that is broken or exceeds a limit.
pub fn for_each_entry(
    layout: &Layout,
    image: &Image,
    limits: &Limits,
    mut visit: impl FnMut(usize, LayerEntry<'_>, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut entries, mut name_bytes) = (0, 0);
    let mut budget = Budget::of_image(layout, image, limits);
    for (number, layer) in worth_reading(&image.manifest.layers) {
        read_layer(layout, layer, limits, &mut budget, |_, entry, content| {
            entries += 1;
            name_bytes += entry.path.len();
            if entries > limits.entries || name_bytes > limits.name_bytes {
                return Err(Error::Refused {
                    what: format!("layer {}", layer.digest),
                    reason: format!("the image has more than {} entries or too long names", limits.entries),
                });
            }
            let kind = match &entry.kind {
                Kind::Directory => LayerEntryKind::Directory,
                Kind::File { .. } => LayerEntryKind::File,
                Kind::HardLink(target) | Kind::Symlink(target) => LayerEntryKind::Link(target),
                Kind::Special => LayerEntryKind::Special,
            };
            let entry = LayerEntry {
                path: &entry.path,
                kind,
                mode: entry.mode,
                has_capabilities: entry.has_capabilities,
            };
            // Holes of sparse files cost nothing to announce.
            visit(number, entry, &mut content.take(limits.file_bytes))
        })?;
    }
    Ok(())
}
