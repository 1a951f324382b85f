//! Malicious images: unpacking must not write outside the target, and must not use memory or disk without bound.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use olmkit_oci::layout::Image;
use olmkit_oci::spec::{Descriptor, ImageConfig, Manifest, Platform, RootFs, RunConfig, media_type};
use olmkit_oci::unpack::{Limits, Unpacked, unpack, unpack_reachable};
use olmkit_oci::{Error, Layout};
use tempfile::TempDir;

/// A directory with a layout, a target next to it, and a file that must not change.
struct Trap {
    folder: TempDir,
    layout: Layout,
}

impl Trap {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("layout")).unwrap();
        fs::write(folder.path().join("victim"), "untouched").unwrap();
        Self { folder, layout }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    /// An image of the given tar streams.
    fn image(&self, layers: &[Vec<u8>]) -> Image {
        let blobs = layers.iter().map(|tar| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(tar).unwrap();
            self.layout
                .write_blob(media_type::OCI_LAYER_GZIP, &gzip.finish().unwrap())
                .unwrap()
        });
        image(blobs.collect())
    }

    fn unpack(&self, layers: &[Vec<u8>], selection: &[&str]) -> Result<Unpacked, Error> {
        let result = unpack(
            &self.layout,
            &self.image(layers),
            &self.target(),
            selection,
            &Limits::default(),
        );
        self.check_contained();
        result
    }

    /// Checks that nothing outside the target was created or changed, and that no link in it leads out.
    fn check_contained(&self) {
        assert_eq!(
            fs::read_to_string(self.folder.path().join("victim")).unwrap(),
            "untouched"
        );
        let mut beside: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "target")
            .collect();
        beside.sort();
        assert_eq!(beside, ["layout", "victim"]);
        let Ok(root) = self.target().canonicalize() else { return };
        for entry in walk(&root) {
            if let Ok(real) = entry.canonicalize() {
                assert!(
                    real.starts_with(&root),
                    "{} leads to {}",
                    entry.display(),
                    real.display()
                );
            }
        }
    }

    fn files(&self) -> BTreeMap<String, String> {
        let root = self.target();
        walk(&root)
            .into_iter()
            .filter(|path| path.is_file())
            .map(|path| {
                (
                    path.strip_prefix(&root).unwrap().display().to_string(),
                    fs::read_to_string(&path).unwrap(),
                )
            })
            .collect()
    }
}

fn image(layers: Vec<Descriptor>) -> Image {
    let config = Descriptor::new(media_type::OCI_CONFIG, olmkit_oci::sha256(b""), 0);
    Image {
        descriptor: config.clone(),
        manifest: Manifest {
            schema_version: 2,
            media_type: None,
            artifact_type: None,
            config,
            layers,
            subject: None,
            annotations: BTreeMap::new(),
        },
        config: ImageConfig {
            created: None,
            author: None,
            architecture: Platform::host().architecture,
            os: "linux".to_owned(),
            variant: None,
            config: RunConfig::default(),
            rootfs: RootFs::default(),
            history: Vec::new(),
            other: serde_json::Map::new(),
        },
    }
}

fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&entry.path()));
        }
    }
    found
}

/// One tar entry as an attacker writes it: no check of names, sizes or kinds.
struct Raw<'a> {
    kind: u8,
    name: &'a str,
    link: &'a str,
    content: &'a [u8],
    claimed: Option<u64>,
}

fn file<'a>(name: &'a str, content: &'a str) -> Raw<'a> {
    Raw {
        kind: b'0',
        name,
        link: "",
        content: content.as_bytes(),
        claimed: None,
    }
}

fn link<'a>(kind: u8, name: &'a str, link: &'a str) -> Raw<'a> {
    Raw {
        kind,
        name,
        link,
        content: b"",
        claimed: None,
    }
}

const SYMLINK: u8 = b'2';
const HARD_LINK: u8 = b'1';

fn tar(entries: &[Raw]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        let raw = header.as_mut_bytes();
        raw[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        raw[157..157 + entry.link.len()].copy_from_slice(entry.link.as_bytes());
        raw[156] = entry.kind;
        header.set_mode(0o4777);
        header.set_size(entry.claimed.unwrap_or(entry.content.len() as u64));
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(entry.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../victim", "a/../../victim", "..", "a/b/../../../victim"] {
        let trap = Trap::new();
        let error = trap.unpack(&[tar(&[file(name, "owned")])], &[]).unwrap_err();
        assert!(error.to_string().contains("leads out of the image"), "{name}: {error}");
    }
}

#[test]
fn absolute_names_belong_to_the_image() {
    let trap = Trap::new();
    let victim = trap.folder.path().join("victim").display().to_string();
    trap.unpack(&[tar(&[file(&victim, "inside")])], &[]).unwrap();
    assert_eq!(trap.files().into_values().collect::<Vec<_>>(), ["inside"]);
}

#[test]
fn writing_through_a_link_stays_inside() {
    let trap = Trap::new();
    let outside = trap.folder.path().display().to_string();
    let layers = [
        tar(&[
            link(SYMLINK, "out", &outside),
            link(SYMLINK, "up", "../"),
            link(SYMLINK, "victim", "../victim"),
        ]),
        tar(&[
            file("out/victim", "owned"),
            file("up/victim", "owned"),
            file("victim", "own file"),
        ]),
    ];
    trap.unpack(&layers, &[]).unwrap();
    let selected = Trap::new();
    selected.unpack(&layers, &["/out", "/up", "/victim"]).unwrap();
}

#[test]
fn a_link_swapped_for_a_directory_within_one_layer_stays_inside() {
    let trap = Trap::new();
    let outside = trap.folder.path().display().to_string();
    let entries = [
        file("a/file", "x"),
        link(SYMLINK, "a", &outside),
        file("a/victim", "owned"),
        link(SYMLINK, "b", "a"),
        file("b/victim", "owned"),
    ];
    trap.unpack(&[tar(&entries)], &[]).unwrap();
}

#[test]
fn links_to_the_outside_are_not_followed_when_they_are_read() {
    let trap = Trap::new();
    let victim = trap.folder.path().join("victim").display().to_string();
    let layer = tar(&[
        link(SYMLINK, "manifests/a.yaml", &victim),
        link(SYMLINK, "manifests/b.yaml", "../../../etc/passwd"),
    ]);
    let unpacked = trap.unpack(&[layer], &["/manifests"]).unwrap();
    assert_eq!(trap.files(), BTreeMap::new());
    assert_eq!(unpacked.left_out, ["manifests/a.yaml", "manifests/b.yaml"]);
}

#[test]
fn hard_links_reach_only_files_of_the_image() {
    for target in ["../victim", "/etc/passwd", "nothing", "directory"] {
        let trap = Trap::new();
        let directory = Raw {
            kind: b'5',
            name: "directory",
            link: "",
            content: b"",
            claimed: None,
        };
        assert!(
            trap.unpack(&[tar(&[directory, link(HARD_LINK, "a", target)])], &[])
                .is_err(),
            "{target}"
        );
    }
    let trap = Trap::new();
    trap.unpack(
        &[
            tar(&[file("a", "x"), link(HARD_LINK, "b", "a")]),
            tar(&[file("a", "y")]),
        ],
        &[],
    )
    .unwrap();
    assert_eq!(
        trap.files(),
        BTreeMap::from([("a".into(), "y".into()), ("b".into(), "x".into())])
    );
}

#[test]
fn hard_links_through_linked_directories_are_found() {
    let trap = Trap::new();
    let layers = [
        tar(&[file("usr/lib/a", "x"), link(SYMLINK, "lib", "usr/lib")]),
        tar(&[link(HARD_LINK, "lib/b", "/lib/a"), link(HARD_LINK, "c", "x/../lib/b")]),
    ];
    trap.unpack(&layers, &["/usr", "/c"]).unwrap();
    let expected = [("c", "x"), ("usr/lib/a", "x"), ("usr/lib/b", "x")];
    assert_eq!(
        trap.files(),
        expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
    );
}

#[test]
fn names_that_no_one_asked_for_do_not_matter() {
    let trap = Trap::new();
    let mut bytes = tar(&[file("lib/bad-", "1"), file("lib/bad+", "2"), file("a/../etc/b", "x")]);
    // Two names that differ only in bytes that are not UTF-8.
    for (header, byte) in [(0, 0xff), (1024, 0xfe)] {
        bytes[header + 7] = byte;
        bytes[header + 148..header + 156].fill(b' ');
        let sum: u32 = bytes[header..header + 512].iter().map(|byte| u32::from(*byte)).sum();
        bytes[header + 148..header + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    trap.unpack(&[bytes.clone()], &["/etc"]).unwrap();
    assert_eq!(trap.files(), BTreeMap::from([("etc/b".into(), "x".into())]));
    let all = Trap::new();
    all.unpack(&[bytes], &[]).unwrap();
    assert_eq!(all.files().len(), 3, "{:?}", all.files());
}

/// An image with a catalog among many other files.
fn catalog() -> Vec<u8> {
    let names: Vec<String> = (0..1000)
        .map(|number| format!("usr/lib/d{}/{number}", number % 7))
        .collect();
    let mut entries: Vec<Raw> = names.iter().map(|name| file(name, "x")).collect();
    entries.extend([
        file("opt/real/a.yaml", "a"),
        file("opt/real/deep/b.yaml", "b"),
        file("srv/shared/c.yaml", "c"),
        file("srv/unused", "d"),
        link(b'2', "configs", "/opt/link"),
        link(b'2', "opt/link", "real"),
        link(b'2', "opt/real/file.yaml", "../../srv/shared/c.yaml"),
        link(b'2', "opt/real/directory", "/srv/shared"),
        link(b'2', "opt/real/loop", "loop"),
        link(b'2', "opt/real/up", ".."),
        link(b'1', "opt/real/same.yaml", "usr/lib/d0/0"),
    ]);
    tar(&entries)
}

#[test]
fn only_reachable_files_are_written() {
    let trap = Trap::new();
    let image = trap.image(&[catalog()]);
    let whole = trap.folder.path().join("target/whole");
    let part = trap.folder.path().join("target/part");
    let limits = Limits::default();
    unpack(&trap.layout, &image, &whole, &[], &limits).unwrap();
    let names = ["configs", "manifests", "usr/lib/../../etc"];
    let unpacked = unpack_reachable(&trap.layout, &image, &part, &names, &limits).unwrap();
    trap.check_contained();
    assert_eq!(unpacked.files, 4);
    assert_eq!(unpacked.left_out, ["opt/real/loop"]);
    // A reader finds the same below the name.
    let found = |root: &Path| -> BTreeMap<PathBuf, Option<PathBuf>> {
        let links = walk(&root.join("opt")).into_iter();
        let relative = |path: &Path| path.strip_prefix(root).unwrap().to_owned();
        links.map(|path| (relative(&path), fs::read_link(&path).ok())).collect()
    };
    assert_eq!(found(&part), found(&whole));
    for name in [
        "configs/a.yaml",
        "configs/file.yaml",
        "configs/directory/c.yaml",
        "configs/up/real/deep/b.yaml",
    ] {
        assert_eq!(
            fs::read(part.join(name)).unwrap(),
            fs::read(whole.join(name)).unwrap(),
            "{name}"
        );
    }
    let entries = walk(&part).len();
    assert!(entries < 25, "{entries}");
}

#[test]
fn the_root_reaches_everything() {
    let trap = Trap::new();
    let image = trap.image(&[catalog()]);
    for name in ["", "/", "./"] {
        let target = tempfile::tempdir().unwrap();
        let unpacked = unpack_reachable(&trap.layout, &image, target.path(), &[name], &Limits::default()).unwrap();
        assert_eq!(unpacked.files, 1005);
    }
}

#[test]
fn links_within_reachable_files_end_soon() {
    let trap = Trap::new();
    let deep: Vec<String> = (1..45).map(|depth| vec!["d"; depth].join("/")).collect();
    let names: Vec<String> = (0..deep.len()).map(|number| format!("start/{number}")).collect();
    let targets: Vec<String> = deep.iter().map(|name| format!("/{name}")).collect();
    let mut entries: Vec<Raw> = names
        .iter()
        .zip(&targets)
        .map(|(name, target)| link(b'2', name, target))
        .collect();
    let files: Vec<String> = (0..100)
        .map(|number| format!("{}/{number}", deep.last().unwrap()))
        .collect();
    entries.extend(files.iter().map(|name| file(name, "x")));
    entries.push(link(b'2', "start/root", "/"));
    let image = trap.image(&[tar(&entries)]);
    let unpacked = unpack_reachable(&trap.layout, &image, &trap.target(), &["start"], &Limits::default()).unwrap();
    trap.check_contained();
    assert_eq!(unpacked.files, 100);
}

#[test]
fn a_device_hides_the_file_below_it() {
    let trap = Trap::new();
    trap.unpack(&[tar(&[file("a", "x")]), tar(&[link(b'3', "a", "")])], &["/a"])
        .unwrap();
    assert_eq!(trap.files(), BTreeMap::new());
}

#[test]
fn compression_is_what_the_bytes_show() {
    let tar = tar(&[file("a", "x")]);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&tar).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(tar.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    for bytes in [tar, gzip, zstd] {
        for kind in [
            media_type::OCI_LAYER,
            media_type::OCI_LAYER_GZIP,
            media_type::OCI_LAYER_ZSTD,
            media_type::DOCKER_LAYER,
            media_type::DOCKER_FOREIGN_GZIP,
        ] {
            let trap = Trap::new();
            let layer = trap.layout.write_blob(kind, &bytes).unwrap();
            unpack(
                &trap.layout,
                &image(vec![layer]),
                &trap.target(),
                &[],
                &Limits::default(),
            )
            .unwrap();
            assert_eq!(trap.files(), BTreeMap::from([("a".into(), "x".into())]));
        }
    }
}

/// A sparse file without data: a PAX map, and a size.
fn hole(size: u64) -> Vec<u8> {
    named_hole("hole", size)
}

fn named_hole(name: &str, size: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in [
        ("GNU.sparse.map", "0,0".to_owned()),
        ("GNU.sparse.size", size.to_string()),
    ] {
        let bare = key.len() + value.len() + 3;
        let length = (bare..)
            .find(|length| length - length.to_string().len() == bare)
            .unwrap();
        text.extend(format!("{length} {key}={value}\n").bytes());
    }
    let text = String::from_utf8(text).unwrap();
    let mut bytes = tar(&[
        Raw {
            kind: b'x',
            ..file("pax", &text)
        },
        file(name, ""),
        file("a", "x"),
    ]);
    bytes.truncate(bytes.len() - 1024);
    bytes
}

#[test]
fn holes_of_sparse_files_are_bounded_like_bombs() {
    for size in [BOMB, 1 << 40, u64::MAX] {
        let trap = Trap::new();
        let error = trap.unpack(&[hole(size)], &[]).unwrap_err().to_string();
        assert!(error.contains("bytes"), "{error}");
        // The file was not requested.
        let trap = Trap::new();
        trap.unpack(&[hole(size)], &["/a"]).unwrap();
        assert_eq!(trap.files(), BTreeMap::from([("a".into(), "x".into())]));
    }
    let trap = Trap::new();
    // Each layer alone would be small enough.
    let part = Limits::RATIO_FREE - 1;
    let layers: Vec<_> = (0..=Limits::IMAGE_RATIO_FREE / Limits::RATIO_FREE)
        .map(|number| named_hole(&format!("hole{number}"), part))
        .collect();
    let error = trap.unpack(&layers, &[]).unwrap_err().to_string();
    assert!(error.contains("at most 1073741824 are written"), "{error}");
    let trap = Trap::new();
    trap.unpack(&[hole(1 << 20)], &[]).unwrap();
    assert_eq!(fs::metadata(trap.target().join("hole")).unwrap().len(), 1 << 20);
}

#[test]
fn a_zstd_bomb_is_stopped() {
    let trap = Trap::new();
    // A frame with a window of 1 MiB, and blocks of one byte that expand to 128 KiB each.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    let block = |last: u32| ((128_u32 << 10) << 3 | 1 << 1 | last).to_le_bytes();
    for last in std::iter::repeat_n(0, 2000).chain([1]) {
        bytes.extend_from_slice(&block(last)[..3]);
        bytes.push(0);
    }
    let layer = trap.layout.write_blob(media_type::OCI_LAYER_ZSTD, &bytes).unwrap();
    let result = unpack(
        &trap.layout,
        &image(vec![layer]),
        &trap.target(),
        &[],
        &Limits::default(),
    );
    let error = result.unwrap_err().to_string();
    assert!(error.contains("unpacks to more than"), "{error}");
    let memory = peak_memory();
    assert!(memory < 256 << 20, "{memory} bytes");
}

#[test]
fn nondistributable_layers_are_named() {
    let trap = Trap::new();
    let mut layer = Descriptor::new(media_type::DOCKER_FOREIGN_GZIP, olmkit_oci::sha256(b"gone"), 4);
    layer
        .other
        .insert("urls".to_owned(), serde_json::json!(["https://mcr.test/blob"]));
    let result = unpack(
        &trap.layout,
        &image(vec![layer]),
        &trap.target(),
        &[],
        &Limits::default(),
    );
    let error = result.unwrap_err().to_string();
    assert!(
        error.contains("nondistributable") && error.contains("https://mcr.test/blob"),
        "{error}"
    );
}

#[test]
fn links_without_end_are_left_out() {
    let trap = Trap::new();
    let entries = [
        link(SYMLINK, "self", "self"),
        link(SYMLINK, "one", "two"),
        link(SYMLINK, "two", "one"),
        link(SYMLINK, "configs/above", ".."),
        link(SYMLINK, "configs/again", "/configs"),
        file("configs/a", "x"),
    ];
    trap.unpack(&[tar(&entries)], &["/self", "/one", "/configs"]).unwrap();
    assert_eq!(trap.files(), BTreeMap::from([("configs/a".into(), "x".into())]));
}

#[test]
fn links_that_multiply_end_soon() {
    // Each directory contains ten links to the next: ten to the power of the depth names.
    let mut entries = Vec::new();
    let names: Vec<(String, String)> = (0..30)
        .flat_map(|level| (0..10).map(move |number| (format!("d{level}/l{number}"), format!("/d{}", level + 1))))
        .collect();
    entries.extend(names.iter().map(|(name, target)| link(SYMLINK, name, target)));
    entries.push(file("d30/file", "x"));
    let trap = Trap::new();
    let start = std::time::Instant::now();
    let error = trap.unpack(&[tar(&entries)], &["/d0"]).unwrap_err();
    assert!(error.to_string().contains("links make more than"), "{error}");
    assert!(start.elapsed().as_secs() < 120);
}

#[test]
fn devices_and_pipes_are_not_made() {
    let trap = Trap::new();
    let entries = [
        link(b'3', "dev/zero", ""),
        link(b'4', "dev/sda", ""),
        link(b'6', "pipe", ""),
        file("a", "x"),
    ];
    let unpacked = trap.unpack(&[tar(&entries)], &[]).unwrap();
    assert_eq!(unpacked.left_out, ["dev/sda", "dev/zero", "pipe"]);
    assert_eq!(trap.files(), BTreeMap::from([("a".into(), "x".into())]));
}

#[test]
fn special_permission_bits_are_dropped() {
    use std::os::unix::fs::PermissionsExt;
    let trap = Trap::new();
    trap.unpack(&[tar(&[file("a", "x")])], &[]).unwrap();
    assert_eq!(
        fs::metadata(trap.target().join("a")).unwrap().permissions().mode() & 0o7777,
        0o755
    );
}

#[test]
fn absurd_sizes_are_refused() {
    let claims = |claimed| Raw {
        kind: b'0',
        name: "big",
        link: "",
        content: b"x",
        claimed: Some(claimed),
    };
    for size in [5 << 30, u64::MAX, 1 << 20] {
        let trap = Trap::new();
        assert!(trap.unpack(&[tar(&[claims(size)])], &[]).is_err(), "{size}");
    }
    // Names in GNU and pax extensions have separate sizes.
    for kind in [b'L', b'K', b'x', b'g'] {
        let trap = Trap::new();
        let extension = Raw {
            kind,
            name: "x",
            link: "",
            content: b"x",
            claimed: Some(4 << 30),
        };
        let error = trap.unpack(&[tar(&[extension])], &[]).unwrap_err();
        assert!(error.to_string().contains("extension record claims"), "{error}");
    }
    let trap = Trap::new();
    let deep = vec!["d"; 49].join("/");
    let longer: Vec<String> = (0..3).map(|_| deep.clone()).collect();
    let longer = longer.join("/");
    let extension = Raw {
        kind: b'L',
        name: "././@LongLink",
        link: "",
        content: longer.as_bytes(),
        claimed: None,
    };
    let error = trap.unpack(&[tar(&[extension, file("short", "x")])], &[]).unwrap_err();
    assert!(error.to_string().contains("directories deep"), "{error}");
}

/// Yields zeros for ever, without taking room.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.min(buffer.len() as u64) as usize;
        buffer[..count].fill(0);
        self.0 -= count as u64;
        Ok(count)
    }
}

/// Twice what a small layer may become.
const BOMB: u64 = 2 * Limits::RATIO_FREE;

#[test]
fn a_decompression_bomb_is_stopped() {
    let trap = Trap::new();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = tar::Header::new_gnu();
    header.set_path("bomb").unwrap();
    header.set_size(BOMB);
    header.set_mode(0o644);
    header.set_cksum();
    gzip.write_all(header.as_bytes()).unwrap();
    std::io::copy(&mut Zeros(BOMB), &mut gzip).unwrap();
    let bytes = gzip.finish().unwrap();
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    let layer = trap.layout.write_blob(media_type::OCI_LAYER_GZIP, &bytes).unwrap();
    let error = unpack(
        &trap.layout,
        &image(vec![layer]),
        &trap.target(),
        &[],
        &Limits::default(),
    )
    .unwrap_err();
    trap.check_contained();
    assert!(error.to_string().contains("unpacks to more than"), "{error}");
    let memory = peak_memory();
    assert!(memory < 256 << 20, "{memory} bytes");
}

/// An image of layers that each become as large as a small layer may.
#[test]
fn layers_that_are_a_bomb_together_are_stopped() {
    let trap = Trap::new();
    let size = Limits::RATIO_FREE - 1024;
    let layer = |number: u64| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let mut header = tar::Header::new_gnu();
        header.set_path(format!("zeros/{number}")).unwrap();
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        gzip.write_all(header.as_bytes()).unwrap();
        std::io::copy(&mut Zeros(size), &mut gzip).unwrap();
        let bytes = gzip.finish().unwrap();
        trap.layout.write_blob(media_type::OCI_LAYER_GZIP, &bytes).unwrap()
    };
    let most = Limits::IMAGE_RATIO_FREE / Limits::RATIO_FREE;
    let mut layers: Vec<_> = (0..most).map(layer).collect();
    // No file is wanted, and nothing but the number of layers differs.
    let unpack = |layers| {
        unpack(
            &trap.layout,
            &image(layers),
            &trap.target(),
            &["/none"],
            &Limits::default(),
        )
    };
    unpack(layers.clone()).unwrap();
    fs::remove_dir(trap.target()).unwrap();
    layers.push(layer(most));
    let error = unpack(layers).unwrap_err().to_string();
    trap.check_contained();
    assert!(
        error.contains("with the other layers, it unpacks to more than"),
        "{error}"
    );
}

/// The most memory this process has used, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn too_many_entries_are_refused_within_bounded_memory() {
    let trap = Trap::new();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = tar::Header::new_gnu();
    for number in 0..60_000_u32 {
        header
            .set_path(format!("directory/with/some/length/in/its/name/{number}"))
            .unwrap();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(0);
        header.set_cksum();
        gzip.write_all(header.as_bytes()).unwrap();
    }
    let layer = trap
        .layout
        .write_blob(media_type::OCI_LAYER_GZIP, &gzip.finish().unwrap())
        .unwrap();
    let limits = Limits {
        entries: 50_000,
        ..Limits::default()
    };
    let error = unpack(&trap.layout, &image(vec![layer]), &trap.target(), &[], &limits).unwrap_err();
    trap.check_contained();
    assert!(error.to_string().contains("entries"), "{error}");
    let memory = peak_memory();
    assert!(memory < 256 << 20, "{memory} bytes");
}

#[test]
fn a_layer_of_whiteouts_takes_linear_time() {
    let names: Vec<String> = (0..20_000).map(|number| format!("a/{number}")).collect();
    let mut entries: Vec<Raw> = names.iter().map(|name| file(name, "")).collect();
    entries.extend((0..20_000).map(|_| file("a/.wh..wh..opq", "")));
    let trap = Trap::new();
    let start = std::time::Instant::now();
    trap.unpack(&[tar(&entries)], &["/none"]).unwrap();
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

#[test]
fn whiteouts_cannot_reach_beyond_the_image() {
    for name in [".wh...", ".wh..", ".wh.", "a/.wh..."] {
        let trap = Trap::new();
        let result = trap.unpack(&[tar(&[file("a/b", "x")]), tar(&[file(name, "")])], &[]);
        assert!(result.is_err(), "{name}");
    }
}

#[test]
fn a_layer_that_is_not_what_its_digest_says_is_refused() {
    let trap = Trap::new();
    let image = trap.image(&[tar(&[file("a", "x")])]);
    let path = trap.layout.blob_path(&image.manifest.layers[0].digest);
    let other = trap.image(&[tar(&[file("a", "y")])]);
    fs::copy(trap.layout.blob_path(&other.manifest.layers[0].digest), &path).unwrap();
    let error = unpack(&trap.layout, &image, &trap.target(), &[], &Limits::default()).unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. } | Error::Size { .. }), "{error}");
    assert_eq!(trap.files(), BTreeMap::new());
}

#[test]
fn truncated_and_garbled_layers_are_errors() {
    let good = tar(&[file("a", "content of a"), file("b", "content of b")]);
    for length in [1, 100, 511, 512, 700, 1500] {
        let trap = Trap::new();
        // A stream that ends between two entries is a complete archive without its end mark, and readers take it.
        let _ = trap.unpack(&[good[..length].to_vec()], &[]);
    }
    for position in (0..1536).step_by(7) {
        let mut bad = good.clone();
        bad[position] ^= 0x55;
        let trap = Trap::new();
        let _ = trap.unpack(&[bad], &[]);
    }
}

#[test]
fn a_target_with_something_in_it_is_refused() {
    let trap = Trap::new();
    fs::create_dir(trap.target()).unwrap();
    std::os::unix::fs::symlink(trap.folder.path(), trap.target().join("out")).unwrap();
    let image = trap.image(&[tar(&[file("out/victim", "owned")])]);
    let error = unpack(&trap.layout, &image, &trap.target(), &[], &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    fs::remove_file(trap.target().join("out")).unwrap();
    trap.check_contained();
}

/// A name put together from what attackers like.
fn nasty_name() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let part = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "..",
        ".",
        "",
        "victim",
        "layout",
        ".wh.a",
        ".wh.b",
        ".wh..wh..opq",
        ".wh...",
        "/",
        "\u{e9}",
    ]);
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    /// Whatever entries come in whatever order over several layers, also with flipped bytes: all of it stays inside.
    #[test]
    fn hostile_layers_write_only_into_their_directory(
        layers in proptest::collection::vec(
            proptest::collection::vec(
                (proptest::sample::select(b"0125346Lx7S".to_vec()), nasty_name(), nasty_name()),
                0..20,
            ),
            1..4,
        ),
        flips in proptest::collection::vec((0_usize..20_000, 0_u8..), 0..3),
        selected in proptest::option::of(nasty_name()),
    ) {
        let trap = Trap::new();
        let tars: Vec<Vec<u8>> = layers
            .iter()
            .map(|entries| {
                let raw: Vec<Raw> = entries
                    .iter()
                    .map(|(kind, name, link)| Raw { kind: *kind, name, link, content: b"owned", claimed: None })
                    .collect();
                let mut bytes = tar(&raw);
                for (position, mask) in &flips {
                    if let Some(byte) = bytes.get_mut(*position) {
                        *byte ^= mask;
                    }
                }
                bytes
            })
            .collect();
        let selection: Vec<&str> = selected.iter().map(String::as_str).collect();
        let _ = trap.unpack(&tars, &selection);
    }
}
