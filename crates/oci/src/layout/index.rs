//! `index.json`: the names of images. Also the entries of other indexes.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use super::{Layout, display};
use crate::Reference;
use crate::digest::Digest;
use crate::error::Error;
use crate::limits::DOCUMENT_BYTES;
use crate::read::read_limited;
use crate::spec::{Descriptor, Index, Platform, check_unambiguous, is_index, is_manifest, media_type, media_type_of};

/// The annotation of `index.json` entries that contains an image's name.
pub const REFERENCE_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation with the full name in archives of Docker 25 and later and of containerd. [`REFERENCE_NAME`] is the tag there.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// The names of an `index.json` entry, the fullest first.
pub fn names(entry: &Descriptor) -> impl Iterator<Item = &str> {
    [CONTAINERD_NAME, REFERENCE_NAME]
        .into_iter()
        .filter_map(|key| entry.annotations.get(key).map(String::as_str))
}

/// `index.json` with the bytes of its entries. A change does not rewrite the other entries, even those of unknown form.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct RawIndex {
    #[serde(default)]
    manifests: Option<Vec<Box<RawValue>>>,
    /// The other fields. They are few and simple, so their values are kept, not their bytes.
    #[serde(flatten)]
    other: serde_json::Map<String, serde_json::Value>,
}

impl RawIndex {
    pub(super) fn entries(&mut self) -> &mut Vec<Box<RawValue>> {
        self.manifests.get_or_insert_default()
    }
}

/// An entry, if it is a descriptor.
pub(super) fn parse_entry(raw: &RawValue) -> Option<Descriptor> {
    serde_json::from_str(raw.get()).ok()
}

fn entry_name(raw: &RawValue) -> Option<String> {
    parse_entry(raw)?.annotations.get(REFERENCE_NAME).cloned()
}

impl Layout {
    /// The layout's index of named images. Entries that are not descriptors are omitted.
    pub fn index(&self) -> Result<Index, Error> {
        let mut raw = self.raw_index()?;
        let mut manifests: Vec<Descriptor> = raw.entries().iter().filter_map(|entry| parse_entry(entry)).collect();
        self.add_media_types(&mut manifests);
        Ok(Index {
            manifests,
            ..empty_index()
        })
    }

    pub(super) fn raw_index(&self) -> Result<RawIndex, Error> {
        let path = self.root.join("index.json");
        let bytes = read_limited(&path, DOCUMENT_BYTES)?;
        let what = match &self.archive {
            Some(archive) => format!("index.json of {}", archive.display()),
            None => display(&path),
        };
        if let Err(reason) = check_unambiguous(&bytes, media_type::OCI_INDEX) {
            return Err(Error::Refused { what, reason });
        }
        serde_json::from_slice(&bytes).map_err(Error::document(what))
    }

    /// The entry of an image by name: its full name, its tag, or a spelling that means the same, as `busybox` and
    /// `docker.io/library/busybox:latest` do. `@0` is the first entry. Without a name, the only image of the layout. It may have
    /// several names.
    pub fn find(&self, name: Option<&str>) -> Result<Descriptor, Error> {
        let index = self.index()?;
        let find = |fits: &dyn Fn(&str) -> bool| index.manifests.iter().find(|entry| names(entry).any(fits));
        let found = match name {
            None => match index.manifests.split_first() {
                Some((first, others)) if others.iter().all(|other| other.digest == first.digest) => Some(first),
                _ => None,
            },
            Some(name) => find(&|have| have == name)
                .or_else(|| find(&|have| have.rsplit_once(':').is_some_and(|(_, tag)| tag == name)))
                .or_else(|| {
                    let wanted = normalized(name)?;
                    find(&|have| normalized(have).as_ref() == Some(&wanted))
                })
                .or_else(|| index.manifests.get(position(name)?)),
        };
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = index.manifests.iter().filter_map(|entry| names(entry).next()).collect();
            Error::Missing {
                what: name.map_or_else(|| "a single image".to_owned(), |name| format!("image {name}")),
                place: self.place(),
                hint: if names.is_empty() {
                    String::new()
                } else {
                    format!(" (it contains: {})", names.join(", "))
                },
            }
        })
    }

    /// Names an image. An entry of the same name is replaced.
    pub fn set(&self, name: &str, descriptor: &Descriptor) -> Result<(), Error> {
        self.set_all(&[(Some(name.to_owned()), descriptor.clone())])
    }

    /// Adds several images in one step, with a name or without. Entries of the same names are replaced; of equal names the
    /// last counts.
    pub fn set_all(&self, images: &[(Option<String>, Descriptor)]) -> Result<(), Error> {
        let mut index = self.raw_index()?;
        let entries = std::mem::take(index.entries()).into_iter();
        let mut entries: Vec<(Option<String>, Box<RawValue>)> = entries.map(|old| (entry_name(&old), old)).collect();
        for (name, image) in images {
            let key = |name: &String| (REFERENCE_NAME.to_owned(), name.clone());
            let entry = Descriptor {
                annotations: name.iter().map(key).collect(),
                ..image.clone()
            };
            let entry = to_raw_value(&entry).map_err(Error::document("index.json"))?;
            let is_replaced = |old: &Option<String>| name.is_some() && old == name;
            let place = entries.iter().position(|(old, _)| is_replaced(old));
            entries.retain(|(old, _)| !is_replaced(old));
            entries.insert(place.unwrap_or(entries.len()), (name.clone(), entry));
        }
        *index.entries() = entries.into_iter().map(|(_, raw)| raw).collect();
        self.write_index(&index)
    }

    /// Removes a name. `false` if it does not exist.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let mut index = self.raw_index()?;
        let entries = index.entries();
        let before = entries.len();
        entries.retain(|entry| entry_name(entry).as_deref() != Some(name));
        let removed = entries.len() < before;
        self.write_index(&index)?;
        Ok(removed)
    }

    fn write_index(&self, index: &impl serde::Serialize) -> Result<(), Error> {
        let index = serde_json::to_vec(index).map_err(Error::document("index.json"))?;
        self.sync()?;
        self.replace("index.json", &index, self.durability)
    }

    /// Adds the media types that an index omits in its entries. The documents of the entries show them. Each document is read
    /// once, however many entries name it.
    pub(super) fn add_media_types(&self, entries: &mut [Descriptor]) {
        let mut known: BTreeMap<(Digest, u64), String> = BTreeMap::new();
        for entry in entries.iter_mut().filter(|entry| entry.media_type.is_empty()) {
            let read = || {
                let bytes = self.read_document(entry).ok();
                bytes.and_then(|bytes| media_type_of(&bytes, None)).unwrap_or_default()
            };
            let key = (entry.digest.clone(), entry.size);
            let media_type = known.entry(key).or_insert_with(read).clone();
            entry.media_type = media_type;
        }
    }
}

/// The entry of an index for a platform.
pub fn choose_platform(index: &Index, platform: &Platform, digest: &Digest) -> Result<Descriptor, Error> {
    let images = || index.manifests.iter().filter(|entry| may_be_image(&entry.media_type));
    let preference = |entry: &&Descriptor| entry.platform.as_ref().and_then(|have| platform.preference(have));
    let ranked = images().filter_map(|entry| Some((preference(&entry)?, entry)));
    // Of equals, `min_by_key` takes the first.
    let matching = ranked.min_by_key(|(rank, _)| *rank).map(|(_, entry)| entry);
    // As for skopeo and crane, an entry without a platform may be for any.
    let any = || images().find(|entry| entry.platform.is_none());
    matching.or_else(any).cloned().ok_or_else(|| {
        let mut have: Vec<String> = images()
            .filter_map(|entry| entry.platform.as_ref())
            .map(ToString::to_string)
            .collect();
        have.sort();
        have.dedup();
        Error::Missing {
            what: format!("an image for {platform}"),
            place: format!("index {digest}"),
            hint: format!(" (it contains: {}); choose one with --platform", have.join(", ")),
        }
    })
}

/// Returns true for the media type of an image or index, and for none: other tools accept such entries too.
fn may_be_image(media_type: &str) -> bool {
    media_type.is_empty() || is_manifest(media_type) || is_index(media_type)
}

/// The number in `@NUMBER`, which selects an image by its position.
pub(crate) fn position(name: &str) -> Option<usize> {
    name.strip_prefix('@')?.parse().ok()
}

/// The full name that engines give to an image name.
fn normalized(name: &str) -> Option<Reference> {
    let reference = Reference::parse_normalized(name).ok()?;
    Some(reference.with_default_tag())
}

pub(super) fn empty_index() -> Index {
    Index {
        schema_version: 2,
        media_type: Some(media_type::OCI_INDEX.to_owned()),
        manifests: Vec::new(),
        annotations: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn naming_an_image_leaves_the_other_entries_alone() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let digest = crate::digest::sha256(b"");
        let known = format!(
            r#"{{"size": 1, "digest":"{digest}", "mediaType":"m", "urls":["u"], "data":"eA==", "annotations": {{"a":null, "{REFERENCE_NAME}":"old"}},
            "platform":{{"os":"windows","architecture":"amd64","os.version":"10","os.features":["w"],"x":1}}, "y":1.50}}"#
        );
        let entries = [
            known.as_str(),
            r#"{"mediaType":"x","digest":"md5:0","annotations":null}"#,
            "7",
        ];
        let text = format!(
            r#"{{"schemaVersion":2,"z":[null],"manifests":[{}]}}"#,
            entries.join(",")
        );
        fs::write(folder.path().join("index.json"), text).unwrap();
        let image = layout.write_blob("text/plain", b"one").unwrap();
        layout.set("new", &image).unwrap();
        let written = fs::read_to_string(folder.path().join("index.json")).unwrap();
        for entry in entries {
            assert!(written.contains(entry), "{written}");
        }
        assert!(written.contains(r#""z":[null]"#), "{written}");
        let names_of = |layout: &Layout| -> Vec<String> {
            let index = layout.index().unwrap();
            index.manifests.iter().flat_map(names).map(str::to_owned).collect()
        };
        assert_eq!(names_of(&layout), ["old", "new"]);
        // The blobs of an unknown entry are unknown, so none is deleted.
        assert!(!layout.prune().unwrap().damaged.is_empty());
        layout.set("old", &image).unwrap();
        assert_eq!(names_of(&layout), ["old", "new"]);
        assert!(layout.remove("new").unwrap() && !layout.remove("new").unwrap());
        assert_eq!(layout.find(None).unwrap().digest, image.digest);
    }

    #[test]
    fn names_are_found_as_engines_spell_them() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let one = layout.write_blob("text/plain", b"one").unwrap();
        let two = layout.write_blob("text/plain", b"two").unwrap();
        let named = ["busybox:latest", "busybox:1"].map(|name| (Some(name.to_owned()), one.clone()));
        layout.set_all(&named).unwrap();
        // Two names of one image are one image.
        assert_eq!(layout.find(None).unwrap().digest, one.digest);
        layout.set("quay.io/a/b:v1", &two).unwrap();
        for name in ["busybox:latest", "busybox", "docker.io/library/busybox", "1"] {
            assert_eq!(layout.find(Some(name)).unwrap().digest, one.digest, "{name}");
        }
        assert!(layout.find(None).is_err() && layout.find(Some("quay.io/a/b")).is_err());
        assert_eq!(layout.find(Some("@2")).unwrap().digest, two.digest);
        assert!(layout.find(Some("@3")).is_err() && layout.find(Some("@-1")).is_err());
    }

    #[test]
    fn a_document_shows_the_media_type_of_all_its_entries() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        // Reading it for each entry would take hours.
        let text = format!(r#"{{"mediaType":"{}"{}}}"#, media_type::OCI_INDEX, " ".repeat(4 << 20));
        let document = layout.write_blob("", text.as_bytes()).unwrap();
        let missing = Descriptor::new("", crate::digest::sha256(b"missing"), 1);
        let mut entries = vec![document; 20_000];
        entries.push(missing);
        let index = Index {
            manifests: entries,
            ..empty_index()
        };
        let bytes = serde_json::to_vec(&index).unwrap();
        fs::write(folder.path().join("index.json"), bytes).unwrap();
        let read = layout.index().unwrap().manifests;
        let known = read.iter().filter(|entry| entry.media_type == media_type::OCI_INDEX);
        assert_eq!((known.count(), read.len()), (20_000, 20_001));
        assert_eq!(read.last().unwrap().media_type, "");
    }

    #[test]
    fn an_entry_without_a_platform_comes_last() {
        let digest = crate::digest::sha256(b"");
        let entry = |size, platform: Option<&str>| Descriptor {
            platform: platform.map(|platform| platform.parse().unwrap()),
            ..Descriptor::new(media_type::OCI_MANIFEST, digest.clone(), size)
        };
        let index = Index {
            manifests: vec![
                entry(0, Some("linux/arm64")),
                entry(1, None),
                entry(2, None),
                entry(3, Some("linux/s390x")),
            ],
            ..empty_index()
        };
        for (platform, expected) in [("linux/arm64", 0), ("linux/amd64", 1), ("linux/s390x", 3)] {
            let chosen = choose_platform(&index, &platform.parse().unwrap(), &digest).unwrap();
            assert_eq!(chosen.size, expected, "{platform}");
        }
    }
}
