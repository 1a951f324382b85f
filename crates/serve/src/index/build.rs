//! Building an index.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use prost::Message as _;

use super::format::{
    BLOCK_LENGTH, BlobSlot, Broken, BundleSlot, ChannelSection, CustomSlot, Directory, EntrySection, Extent, FORMAT,
    ListItem, MAGIC, PackageDisplay, PackageSection, PackageSlot,
};
use super::{Index, Storage};
use crate::{api, record};
use olmkit::catalog::graph;
use olmkit::catalog::model::{BUNDLE, Bundle, CHANNEL, Catalog, Channel, Custom, Deprecation, PACKAGE, Package};

/// Why an index cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be written: a full disk, for instance.
    #[error("cannot write the index: {0}")]
    Write(#[from] io::Error),
    /// A bundle cannot be served.
    #[error(transparent)]
    Bundle(#[from] record::Error),
    /// A custom blob cannot be served.
    #[error("invalid custom schema meta: {0}")]
    Custom(String),
}

/// A bundle whose large parts are in the index already.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its package.
    package: String,
    /// True if the list carries its manifests: it has no image.
    inline: bool,
    slot: BundleSlot,
    common: api::Bundle,
}

/// The content of the index, besides the bundles that were added one by one.
#[derive(Debug, Default)]
pub struct Content<'c> {
    /// The catalog. Its bundles are not looked at.
    pub catalog: Catalog,
    /// Fingerprint of the files it was read from.
    pub fingerprint: &'c [u8],
    /// Packages that were omitted.
    pub broken: Vec<Broken>,
    /// Its blobs in order. `None` if their sources were not stored.
    pub blobs: Option<Vec<BlobSlot>>,
}

/// Writes an index piece by piece: first every bundle, the only large part, then the rest.
pub struct Builder<W> {
    out: W,
    at: u64,
    bundles: Vec<Stored>,
}

impl<W: Write> Builder<W> {
    /// Begins at the start of `out`.
    pub fn new(out: W) -> Self {
        Builder {
            out,
            at: 0,
            bundles: Vec::new(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a piece of the index exceeds 4 GiB"))?;
        let extent = Extent {
            offset: self.at,
            length,
            checksum: crc32fast::hash(bytes),
        };
        self.out.write_all(bytes)?;
        self.at += u64::from(length);
        Ok(extent)
    }

    /// Stores a bundle's manifests and keeps the rest for later.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn bundle(&mut self, bundle: &Bundle) -> Result<(), Error> {
        let prepared = record::prepare(bundle)?;
        self.prepared(bundle, prepared)
    }

    /// As [`Builder::bundle`], with a message that was built elsewhere, for instance on another thread.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn prepared(&mut self, bundle: &Bundle, prepared: record::Prepared) -> Result<(), Error> {
        let manifests = self.write(&prepared.manifests)?;
        self.bundles.push(Stored {
            package: bundle.package.clone(),
            inline: bundle.image.is_empty(),
            slot: BundleSlot {
                name: bundle.name.clone(),
                common: Extent::default(),
                manifests,
            },
            common: prepared.common,
        });
        Ok(())
    }

    /// Stores the source of a blob.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn blob(&mut self, json: &str) -> Result<Extent, Error> {
        Ok(self.write(json.as_bytes())?)
    }

    /// Writes everything else. Bundles of packages that are not in the catalog are dropped.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn finish(mut self, content: Content<'_>) -> Result<W, Error> {
        let Content {
            mut catalog,
            fingerprint,
            broken,
            blobs,
        } = content;
        let mut directory = Directory {
            fingerprint: fingerprint.to_vec(),
            broken,
            with_blobs: blobs.is_some(),
            ..Directory::default()
        };
        directory.customs = self.customs(&catalog.customs)?;
        let mut stored = std::mem::take(&mut self.bundles);
        stored.sort_by(|left, right| (&left.package, &left.slot.name).cmp(&(&right.package, &right.slot.name)));
        catalog.packages.sort_by(|left, right| left.name.cmp(&right.name));
        catalog
            .channels
            .sort_by(|left, right| (&left.package, &left.name).cmp(&(&right.package, &right.name)));
        let deprecated = Deprecated::new(&catalog.deprecations);
        let mut list = Vec::new();
        for package in &catalog.packages {
            let start = stored.partition_point(|bundle| bundle.package < package.name);
            let end = stored.partition_point(|bundle| bundle.package <= package.name);
            let bundles = stored.get_mut(start..end).unwrap_or_default();
            for bundle in bundles.iter_mut() {
                bundle.common.deprecation = deprecated
                    .message(&package.name, BUNDLE, &bundle.slot.name)
                    .map(|message| api::Deprecation { message });
                bundle.slot.common = self.write(&bundle.common.encode_to_vec())?;
            }
            directory.bundles += bundles.len() as u64;
            let start = catalog
                .channels
                .partition_point(|channel| channel.package < package.name);
            let end = catalog
                .channels
                .partition_point(|channel| channel.package <= package.name);
            let channels = catalog.channels.get(start..end).unwrap_or_default();
            let display = self.write(&display(package).encode_to_vec())?;
            let section = section(package, channels, bundles, display);
            list_items(&section, bundles, &mut list);
            let answer = answer(&section, &deprecated).encode_to_vec();
            directory.packages.push(PackageSlot {
                name: package.name.clone(),
                section: self.write(&section.encode_to_vec())?,
                answer: self.write(&answer)?,
            });
        }
        drop(stored);
        directory.entries = list.len() as u64;
        list.sort_by(|left, right| left.key.cmp(&right.key));
        directory.list = self.blocks(list.iter().map(|item| &item.item))?;
        directory.blob_bytes = blobs.iter().flatten().map(|slot| u64::from(slot.json.length)).sum();
        directory.blobs = self.blocks(blobs.iter().flatten())?;
        let bytes = directory.encode_to_vec();
        let extent = self.write(&bytes)?;
        let mut trailer = Vec::new();
        trailer.extend(extent.offset.to_le_bytes());
        trailer.extend(u64::from(extent.length).to_le_bytes());
        trailer.extend(extent.checksum.to_le_bytes());
        trailer.extend(FORMAT.to_le_bytes());
        trailer.extend(MAGIC);
        self.write(&trailer)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn customs(&mut self, customs: &[Custom]) -> Result<Vec<CustomSlot>, Error> {
        let mut groups: BTreeMap<(&str, &str), Vec<u8>> = BTreeMap::new();
        for custom in customs {
            check_custom(custom)?;
            let blob = record::custom(&custom.json).map_err(Error::Custom)?;
            let group = groups.entry((&custom.schema, &custom.package)).or_default();
            group.extend(blob.encode_length_delimited_to_vec());
        }
        groups
            .into_iter()
            .map(|((schema, package), bytes)| {
                let blobs = self.write(&bytes)?;
                Ok(CustomSlot {
                    schema: schema.to_owned(),
                    package: package.to_owned(),
                    blobs,
                })
            })
            .collect()
    }

    /// Writes consecutive messages in blocks.
    fn blocks<'m, M: prost::Message + 'm>(
        &mut self,
        messages: impl Iterator<Item = &'m M>,
    ) -> Result<Vec<Extent>, Error> {
        let mut blocks = Vec::new();
        let mut block = Vec::new();
        for message in messages {
            // Memory that grows cannot be full.
            let _ = message.encode_length_delimited(&mut block);
            if block.len() >= BLOCK_LENGTH {
                blocks.push(self.write(&block)?);
                block.clear();
            }
        }
        if !block.is_empty() {
            blocks.push(self.write(&block)?);
        }
        Ok(blocks)
    }
}

/// The index of a small catalog, in memory.
///
/// # Errors
/// A bundle or custom blob that cannot be served.
pub fn in_memory(catalog: &Catalog) -> Result<Index, Error> {
    let mut builder = Builder::new(Vec::new());
    for bundle in &catalog.bundles {
        builder.bundle(bundle)?;
    }
    let bytes = builder.finish(Content {
        catalog: Catalog {
            bundles: Vec::new(),
            ..catalog.clone()
        },
        ..Content::default()
    })?;
    Index::open(Storage::Memory(bytes)).map_err(|error| Error::Write(io::Error::other(error)))
}

struct Item {
    /// Channel, package, bundle: the order of ListBundles.
    key: (String, String, String),
    item: ListItem,
}

/// Deprecation messages, by package, schema and name.
struct Deprecated<'c>(HashMap<(&'c str, &'c str, &'c str), &'c str>);

impl<'c> Deprecated<'c> {
    fn new(deprecations: &'c [Deprecation]) -> Self {
        let mut messages = HashMap::new();
        for deprecation in deprecations {
            for entry in deprecation.entries.iter().flatten() {
                messages
                    .entry((deprecation.package.as_str(), entry.schema.as_str(), entry.name.as_str()))
                    .or_insert(entry.message.as_str());
            }
        }
        Deprecated(messages)
    }

    fn message(&self, package: &str, schema: &str, name: &str) -> Option<String> {
        self.0
            .get(&(package, schema, name))
            .map(|message| (*message).to_owned())
    }
}

fn section(package: &Package, channels: &[Channel], bundles: &[Stored], display: Extent) -> PackageSection {
    PackageSection {
        name: package.name.clone(),
        default_channel: package.default_channel.clone(),
        channels: channels
            .iter()
            .map(|channel| ChannelSection {
                name: channel.name.clone(),
                head: graph::heads(channel.entries())
                    .first()
                    .map(|head| (*head).to_owned())
                    .unwrap_or_default(),
                entries: entries(channel, bundles),
            })
            .collect(),
        bundles: bundles.iter().map(|bundle| bundle.slot.clone()).collect(),
        display,
    }
}

fn display(package: &Package) -> PackageDisplay {
    let icon = package.icon.as_ref();
    PackageDisplay {
        description: package.description.clone(),
        icon: icon
            .map(|icon| vec![icon.data.clone().unwrap_or_default(), icon.media_type.clone()])
            .unwrap_or_default(),
    }
}

/// The answer of `GetPackage`.
fn answer(section: &PackageSection, deprecated: &Deprecated<'_>) -> api::Package {
    let message = |schema, name: &str| {
        deprecated
            .message(&section.name, schema, name)
            .map(|message| api::Deprecation { message })
    };
    let channels = section.channels.iter().map(|channel| api::Channel {
        name: channel.name.clone(),
        csv_name: channel.head.clone(),
        deprecation: message(CHANNEL, &channel.name),
    });
    api::Package {
        name: section.name.clone(),
        channels: channels.collect(),
        default_channel_name: section.default_channel.clone(),
        deprecation: message(PACKAGE, ""),
    }
}

fn entries(channel: &Channel, bundles: &[Stored]) -> Vec<EntrySection> {
    let mut entries: Vec<EntrySection> = channel
        .entries()
        .iter()
        .filter_map(|entry| {
            let bundle = bundles
                .binary_search_by(|bundle| bundle.slot.name.cmp(&entry.name))
                .ok()?;
            Some(EntrySection {
                bundle: u32::try_from(bundle).ok()?,
                replaces: entry.replaces.clone(),
                skips: entry.skips.clone(),
                skip_range: entry.skip_range.clone(),
            })
        })
        .collect();
    // Bundles are sorted by name, so this is the order by name.
    entries.sort_by_key(|entry| entry.bundle);
    entries
}

fn list_items(section: &PackageSection, bundles: &[Stored], list: &mut Vec<Item>) {
    for channel in &section.channels {
        for entry in &channel.entries {
            let Some(bundle) = bundles.get(entry.bundle as usize) else {
                continue;
            };
            let message = record::entry(&channel.name, entry, true);
            list.push(Item {
                key: (channel.name.clone(), section.name.clone(), bundle.slot.name.clone()),
                item: ListItem {
                    entry: message.encode_to_vec().into(),
                    common: bundle.slot.common,
                    manifests: bundle.inline.then_some(bundle.slot.manifests),
                },
            });
        }
    }
}

/// Schema and package of a custom blob must be valid file names: opm's rule, whose cache stores them as files.
///
/// # Errors
/// opm's message.
pub fn check_custom(custom: &Custom) -> Result<(), Error> {
    let fits = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "._-".contains(character))
    };
    let rule = "must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$";
    if !fits(&custom.schema) {
        return Err(Error::Custom(format!("invalid schema \"{}\": {rule}", custom.schema)));
    }
    if !custom.package.is_empty() && !fits(&custom.package) {
        return Err(Error::Custom(format!("invalid package \"{}\": {rule}", custom.package)));
    }
    Ok(())
}
