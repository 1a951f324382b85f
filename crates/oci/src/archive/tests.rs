use super::saved::Layers;
use super::*;
use crate::Reference;
use crate::compression::Compression;
use crate::spec::{Descriptor, media_type};

/// A member as an archive's writer sets it.
enum Entry<'e> {
    File(&'e str, &'e [u8]),
    Symlink(&'e str, &'e str),
    HardLink(&'e str, &'e str),
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        match entry {
            Entry::File(name, content) => {
                header.set_size(content.len() as u64);
                archive.append_data(&mut header, name, *content).unwrap();
            }
            Entry::Symlink(name, target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, name, target).unwrap();
            }
            Entry::HardLink(name, target) => {
                header.set_entry_type(tar::EntryType::Link);
                archive.append_link(&mut header, name, target).unwrap();
            }
        }
    }
    archive.into_inner().unwrap()
}

fn read(bytes: &[u8]) -> Result<(tempfile::TempDir, Layout), Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    fs::write(&path, bytes).unwrap();
    let layout = read_docker(&path, &folder.path().join("layout"))?;
    Ok((folder, layout))
}

fn config(layers: &[&[u8]]) -> Vec<u8> {
    let diff_ids: Vec<String> = layers.iter().map(|layer| crate::sha256(layer).to_string()).collect();
    let rootfs = serde_json::json!({"type": "layers", "diff_ids": diff_ids});
    serde_json::json!({"os": "linux", "architecture": "amd64", "rootfs": rootfs})
        .to_string()
        .into_bytes()
}

#[test]
fn repeated_layers_and_long_names_are_read() {
    let layer = archive(&[Entry::File("a", b"x")]);
    let long = format!("{}/layer.tar", "d".repeat(120));
    let config = config(&[&layer, &layer, &layer, &layer, &layer]);
    let manifest = serde_json::json!([{"Config": "./c.json", "RepoTags": ["a:v1", "b.io/c:v2"],
        "Layers": [long, "two/layer.tar", "three/../four/layer.tar", "five/layer.tar", "six.tar"]}]);
    let manifest = manifest.to_string();
    let entries = [
        Entry::Symlink("two/layer.tar", "../one/layer.tar"),
        Entry::HardLink("four/layer.tar", "one/layer.tar"),
        Entry::Symlink("one/layer.tar", &format!("../../{long}")),
        Entry::Symlink("unused", "../../outside"),
        Entry::Symlink("five", "four"),
        Entry::Symlink("six.tar", "/five/layer.tar"),
        Entry::Symlink("loop", "loop"),
        Entry::File(&long, &layer),
        Entry::File("./c.json", &config),
        Entry::File("manifest.json", manifest.as_bytes()),
    ];
    let plain = archive(&entries);
    let zstd = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    for bytes in [plain, zstd] {
        let (_folder, layout) = read(&bytes).unwrap();
        // Two names, one image.
        let image = layout
            .image(&layout.find(None).unwrap(), &"linux/amd64".parse().unwrap())
            .unwrap();
        assert_eq!(image.manifest.layers.len(), 5);
        assert!(
            image
                .manifest
                .layers
                .iter()
                .all(|found| found.digest == crate::sha256(&layer))
        );
        assert_eq!(layout.find(Some("b.io/c:v2")).unwrap().digest, image.descriptor.digest);
    }
}

#[test]
fn manifest_json_is_read_as_go_reads_it() {
    let config = config(&[]);
    for (file, text) in [
        (
            "manifest.json",
            r#"[{"config":"c.json","repotags":["a:v1"],"LAYERS":null}]"#,
        ),
        (
            "manifest.json",
            r#"[{"Config":"x","Config":"c.json","RepoTags":["a:v1"]}]"#,
        ),
        ("other.json", r#"[{"Config":"c.json","RepoTags":["a:v1"]}]"#),
    ] {
        let mut entries = vec![Entry::File("c.json", &config), Entry::File(file, text.as_bytes())];
        for link in [
            Entry::Symlink("manifest.json", "other.json"),
            Entry::HardLink("manifest.json", "other.json"),
        ] {
            if file == "other.json" {
                entries.push(link);
            }
            let (_folder, layout) = read(&archive(&entries)).unwrap();
            assert!(layout.find(Some("a:v1")).is_ok(), "{text}");
        }
    }
    let (_folder, none) = read(&archive(&[Entry::File("manifest.json", b"null")])).unwrap();
    assert!(none.index().unwrap().manifests.is_empty());
}

#[test]
fn files_that_no_image_needs_do_not_matter() {
    let layer = archive(&[Entry::File("a", b"x")]);
    let config = config(&[&layer]);
    let list = br#"[{"Config":"c","RepoTags":["a:v1"],"Layers":["l"]},{"Config":"gone","RepoTags":["b:v1"]},
        {"Config":"c","RepoTags":["c:v1"],"Layers":["x"]}]"#;
    for unused in [
        &b"BZh91AY&SYbz"[..],
        b"\x04\x22\x4d\x18lz4",
        b"\xfd7zXZ\0xz",
        b"\x1f\x8bgzip",
    ] {
        let bytes = archive(&[
            Entry::File("x", unused),
            Entry::File("l", &layer),
            Entry::File("c", &config),
            Entry::File("manifest.json", list),
        ]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        fs::write(&path, &bytes).unwrap();
        let read = read_docker_images(&path, &folder.path().join("layout")).unwrap();
        assert!(read.layout.find(Some("a:v1")).is_ok());
        let found: Vec<bool> = read.images.iter().map(Option::is_some).collect();
        assert_eq!(found, [true, false, false]);
        assert!(read.broken.unwrap().to_string().contains("gone"));
        assert!(read_docker(&path, &folder.path().join("all")).is_err());
    }
}

#[test]
fn a_layer_is_decompressed_once_however_often_it_is_listed() {
    let plain = archive(&[Entry::File("a", b"x")]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create_temporary(folder.path()).unwrap();
    let mut known = Layers::new(0);
    let diff_id = crate::sha256(&plain);
    let wrong = crate::sha256(b"wrong");
    for (bytes, compression, is_right) in [
        (gzip.finish().unwrap(), Compression::Gzip, true),
        (b"\x1f\x8bdamaged".to_vec(), Compression::Gzip, false),
    ] {
        let blob = layout.write_blob(media_type::DOCKER_LAYER_GZIP, &bytes).unwrap();
        let file = (blob.digest.clone(), blob.size, compression);
        assert_eq!(known.get(&layout, &file, &diff_id).is_ok(), is_right);
        // Another decompression would need the blob.
        fs::remove_file(layout.blob_path(&blob.digest)).unwrap();
        let again = known.get(&layout, &file, &diff_id);
        assert_eq!(again.as_ref().is_ok_and(|layer| *layer == blob), is_right);
        let error = known.get(&layout, &file, &wrong).unwrap_err();
        assert_eq!(matches!(error, Error::Mismatch { .. }), is_right, "{error}");
        assert!(!error.to_string().contains("No such file"), "{error}");
    }
}

/// Each alone is small enough.
#[test]
fn the_layers_of_an_archive_share_a_budget() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create_temporary(folder.path()).unwrap();
    let mut known = Layers::new(0);
    let wrong = crate::sha256(b"wrong");
    let mut errors = Vec::new();
    for number in 0..=Limits::IMAGE_RATIO_FREE / Limits::RATIO_FREE {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::copy(&mut std::io::repeat(number as u8).take(Limits::RATIO_FREE), &mut gzip).unwrap();
        let bytes = gzip.finish().unwrap();
        let blob = layout.write_blob(media_type::DOCKER_LAYER_GZIP, &bytes).unwrap();
        let file = (blob.digest, blob.size, Compression::Gzip);
        errors.push(known.get(&layout, &file, &wrong).unwrap_err());
    }
    let last = errors.pop().unwrap();
    assert!(
        errors.iter().all(|error| matches!(error, Error::Mismatch { .. })),
        "{errors:?}"
    );
    let source = std::error::Error::source(&last)
        .map(ToString::to_string)
        .unwrap_or_default();
    assert!(source.contains("with the other layers"), "{last} {source}");
}

#[test]
fn tags_that_are_not_names_are_ignored() {
    let config = config(&[]);
    let digest = crate::sha256(b"");
    for tag in ["", "<none>:<none>", "A/B:v1", &format!("a.io/b@{digest}")] {
        let text = serde_json::json!([{"Config": "c.json", "RepoTags": [tag]}]).to_string();
        let entries = [
            Entry::File("c.json", &config),
            Entry::File("manifest.json", text.as_bytes()),
        ];
        let (_folder, layout) = read(&archive(&entries)).unwrap();
        assert!(layout.find(None).unwrap().annotations.is_empty(), "{tag}");
    }
}

#[test]
fn images_are_numbered_in_the_order_of_the_archive() {
    let (one, two) = (
        config(&[]),
        serde_json::to_vec(&serde_json::json!({"os": "x"})).unwrap(),
    );
    let text = br#"[{"Config":"1","RepoTags":["a:v1","b:v1"]},{"Config":"2"}]"#;
    let entries = [
        Entry::File("1", &one),
        Entry::File("2", &two),
        Entry::File("manifest.json", text),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    fs::write(&path, archive(&entries)).unwrap();
    let read = read_docker_images(&path, &folder.path().join("layout")).unwrap();
    assert_eq!(read.layout.index().unwrap().manifests.len(), 3);
    let digests: Vec<_> = read
        .images
        .iter()
        .flatten()
        .map(|image| read.layout.read_manifest(image).unwrap().config.digest)
        .collect();
    assert_eq!(digests, [crate::sha256(&one), crate::sha256(&two)]);
}

#[test]
fn links_in_oci_archives_are_followed() {
    let manifest = br#"{"schemaVersion":2,"config":{"digest":"x"}}"#;
    let digest = crate::sha256(manifest);
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [Descriptor::new("text/plain", digest.clone(), manifest.len() as u64)]});
    let index = index.to_string();
    let blob = format!("blobs/sha256/{}", digest.hex());
    let below = format!("other/{}", digest.hex());
    let cases: [Vec<Entry>; 5] = [
        vec![
            Entry::Symlink(&blob, "../../x"),
            Entry::File("x", manifest),
            Entry::File("index.json", index.as_bytes()),
        ],
        vec![
            Entry::File("x", manifest),
            Entry::HardLink(&blob, "x"),
            Entry::File("index.json", index.as_bytes()),
        ],
        vec![
            Entry::Symlink("blobs/sha256", "../other"),
            Entry::File(&below, manifest),
            Entry::File("index.json", index.as_bytes()),
        ],
        vec![
            Entry::File(&blob, manifest),
            Entry::File("i", index.as_bytes()),
            Entry::Symlink("index.json", "/i"),
        ],
        // One file has two names.
        vec![
            Entry::File("x", manifest),
            Entry::HardLink(&blob, "x"),
            Entry::HardLink("blobs/sha256/0", "x"),
            Entry::File("index.json", index.as_bytes()),
        ],
    ];
    for (number, entries) in cases.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        fs::write(&path, archive(entries)).unwrap();
        let layout = read_oci(&path, &folder.path().join("layout")).unwrap();
        let image = layout.find(None).unwrap();
        assert_eq!(layout.read_document(&image).unwrap(), manifest, "{number}");
    }
}

#[test]
fn a_wrong_blob_matters_only_if_it_is_needed() {
    let digests = [crate::sha256(b"one"), crate::sha256(b"two")];
    let names = digests
        .each_ref()
        .map(|digest| format!("blobs/sha256/{}", digest.hex()));
    let index =
        serde_json::json!({"schemaVersion": 2, "manifests": [Descriptor::new("text/plain", digests[0].clone(), 3)]});
    let entries = [
        Entry::File(&names[0], b"one"),
        Entry::File(&names[1], b"wrong"),
        Entry::File("index.json", index.to_string().as_bytes()),
    ]
    .map(|entry| archive(&[entry]));
    // One archive of three members.
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|part| part[..part.len() - 1024].to_vec())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    fs::write(&path, bytes).unwrap();
    let layout = read_oci(&path, &folder.path().join("layout")).unwrap();
    assert_eq!(layout.read_document(&layout.find(None).unwrap()).unwrap(), b"one");
    let needed = Descriptor::new("text/plain", digests[1].clone(), 3);
    let error = layout.read_document(&needed).unwrap_err();
    assert!(
        matches!(error, Error::Mismatch { .. }) && error.to_string().contains("a.tar"),
        "{error}"
    );
}

#[test]
fn a_damaged_blob_is_not_written_into_an_oci_archive() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(&folder.path().join("layout")).unwrap();
    let blob = layout.write_blob("text/plain", b"memcached").unwrap();
    let path = folder.path().join("a.tar");
    for (content, is_right) in [
        ("memcachee", false),
        ("mem", false),
        ("memcached+", false),
        ("memcached", true),
    ] {
        fs::write(layout.blob_path(&blob.digest), content).unwrap();
        assert_eq!(write_oci(&layout, &blob, "v1", &path).is_ok(), is_right, "{content}");
        assert_eq!(path.exists(), is_right, "{content}");
    }
}

#[test]
fn images_without_layers_and_names_are_read() {
    let config = config(&[]);
    let entries = [
        Entry::File("c.json", &config),
        Entry::File(
            "manifest.json",
            br#"[{"Config":"c.json","RepoTags":null,"Layers":null}]"#,
        ),
    ];
    let (_folder, layout) = read(&archive(&entries)).unwrap();
    assert!(layout.find(None).unwrap().annotations.is_empty());
}

#[test]
fn layers_that_the_configuration_does_not_name_are_refused() {
    let layer = archive(&[Entry::File("a", b"x")]);
    let other = archive(&[Entry::File("a", b"y")]);
    for (config, reason) in [
        (config(&[]), "its manifest has 1 layers, its configuration 0"),
        (config(&[&layer, &layer]), "configuration 2"),
        (config(&[&other]), "expected digest"),
    ] {
        let entries = [
            Entry::File("l.tar", &layer),
            Entry::File("c.json", &config),
            Entry::File("manifest.json", br#"[{"Config":"c.json","Layers":["l.tar"]}]"#),
        ];
        let error = read(&archive(&entries)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn tags_are_what_docker_load_accepts() {
    let digest = crate::sha256(b"");
    for (reference, expected) in [
        ("quay.io/a/b:v1".to_owned(), Some("quay.io/a/b:v1")),
        ("quay.io/a/b".to_owned(), Some("quay.io/a/b:latest")),
        (format!("quay.io/a/b:v1@{digest}"), Some("quay.io/a/b:v1")),
        (format!("quay.io/a/b@{digest}"), None),
    ] {
        let reference: Reference = reference.parse().unwrap();
        assert_eq!(repository_tag(&reference).as_deref(), expected);
    }
}
