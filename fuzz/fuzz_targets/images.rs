//! Any bytes as a layer, as documents of an image, as an archive of images: reading ends without a crash, in bounded
//! memory, and writes only to the target directory.
#![no_main]

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use olmkit_oci::layout::Image;
use olmkit_oci::spec::{Descriptor, ImageConfig, Index, Manifest, Platform, RootFs, RunConfig, media_type};
use olmkit_oci::unpack::{Limits, unpack};
use olmkit_oci::{Layout, Location, Reference, archive, sha256};

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("a directory");
    match kind % 5 {
        4 => layers(&inside, media_type::OCI_LAYER_ZSTD, bytes),
        0 => layers(&inside, media_type::OCI_LAYER, bytes),
        1 => layers(&inside, media_type::OCI_LAYER_GZIP, bytes),
        2 => documents(&inside, bytes),
        _ => archives(&inside, bytes),
    }
    let names: Vec<_> = fs::read_dir(folder.path()).expect("it is there").collect();
    assert_eq!(names.len(), 1, "files were written outside the target: {names:?}");
    stays_inside(&inside.join("target"), &inside.join("target"));
});

/// Links that were made lead nowhere but into the target.
fn stays_inside(directory: &Path, target: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if let Ok(real) = entry.path().canonicalize() {
            assert!(real.starts_with(target), "{:?} leads to {real:?}", entry.path());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            stays_inside(&entry.path(), target);
        }
    }
}

/// Plain bytes are split into two layers, so that the second can replace, hide and link to files of the first. Compressed bytes are
/// one layer.
fn layers(folder: &Path, kind: &str, bytes: &[u8]) {
    let layout = Layout::create(&folder.join("layout")).expect("a layout");
    let half = (bytes.len() / 2).next_multiple_of(512).min(bytes.len());
    let (first, second) = bytes.split_at(half);
    let parts = if kind == media_type::OCI_LAYER {
        vec![first, second]
    } else {
        vec![bytes]
    };
    let layers: Vec<Descriptor> = parts
        .into_iter()
        .map(|layer| layout.write_blob(kind, layer).expect("a blob"))
        .collect();
    let nothing = Descriptor::new(media_type::OCI_CONFIG, sha256(b""), 0);
    let image = Image {
        descriptor: nothing.clone(),
        manifest: Manifest {
            schema_version: 2,
            media_type: None,
            artifact_type: None,
            config: nothing,
            layers,
            subject: None,
            annotations: Default::default(),
        },
        config: ImageConfig {
            created: None,
            author: None,
            architecture: "amd64".to_owned(),
            os: "linux".to_owned(),
            variant: None,
            config: RunConfig::default(),
            rootfs: RootFs::default(),
            history: Vec::new(),
            other: Default::default(),
        },
    };
    let limits = Limits {
        file_bytes: 1 << 20,
        written_bytes: 1 << 20,
        layer_bytes: 8 << 20,
        ..Limits::default()
    };
    let _ = unpack(&layout, &image, &folder.join("target"), &[], &limits);
}

/// The bytes as the document that a name of a layout leads to, whatever kind of document the name claims.
fn documents(folder: &Path, bytes: &[u8]) {
    let _ = serde_json::from_slice::<Index>(bytes);
    let _ = serde_json::from_slice::<Manifest>(bytes);
    let _ = serde_json::from_slice::<ImageConfig>(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(reference) = text.parse::<Reference>() {
            let again: Reference = reference.to_string().parse().expect("a reference reads back");
            assert_eq!(again, reference);
        }
        let _ = text.parse::<Location>();
        let _ = text.parse::<Platform>();
    }
    let layout = Layout::create(&folder.join("layout")).expect("a layout");
    for kind in [media_type::OCI_MANIFEST, media_type::OCI_INDEX] {
        let descriptor = layout.write_blob(kind, bytes).expect("a blob");
        let _ = layout.reachable(&descriptor);
        if let Ok(image) = layout.image(&descriptor, &Platform::host()) {
            let _ = unpack(&layout, &image, &folder.join("target"), &[], &Limits::default());
        }
    }
    fs::write(layout.root().join("index.json"), bytes).expect("a file");
    for descriptor in layout.index().map(|index| index.manifests).unwrap_or_default() {
        let _ = layout.image(&descriptor, &Platform::host());
    }
}

fn archives(folder: &Path, bytes: &[u8]) {
    let path = folder.join("archive.tar");
    fs::write(&path, bytes).expect("a file");
    let _ = archive::read_oci(&path, &folder.join("oci"));
    if let Ok(layout) = archive::read_docker(&path, &folder.join("docker")) {
        for descriptor in layout.index().map(|index| index.manifests).unwrap_or_default() {
            if let Ok(image) = layout.image(&descriptor, &Platform::host()) {
                let _ = unpack(&layout, &image, &folder.join("target"), &[], &Limits::default());
            }
        }
    }
}
