//! A writer of images can be killed at any moment: no file is incomplete, and the next writer continues.

use std::fs;
use std::path::{Path, PathBuf};

use olmkit_oci::build::Recipe;
use olmkit_oci::layer::{Content, LayerBuilder};
use olmkit_oci::spec::Platform;
use olmkit_oci::store::Store;
use olmkit_oci::{Layout, archive, sha256};
use test_support::killed;

const NAME: &str = "r.io/a:v1";

/// Stores two images under one name, and the second in an archive.
fn write(folder: &Path) {
    let store = Store::write(&folder.join("store")).unwrap();
    for text in ["one", "two"] {
        let mut layer = LayerBuilder::new();
        layer.file("/text", Content::Bytes(text.into()), false).unwrap();
        let mut recipe = Recipe::new(Platform::host(), 0);
        recipe.layers.push(("test".to_owned(), layer));
        let image = recipe.build(store.layout()).unwrap();
        store.set(&NAME.parse().unwrap(), &image).unwrap();
    }
    let image = store.find(&NAME.parse().unwrap()).unwrap();
    archive::write_oci(store.layout(), &image, NAME, &folder.join("a.tar")).unwrap();
}

/// The process that the test below starts and kills.
#[test]
fn writer() {
    if let Some(folder) = killed::folder() {
        write(Path::new(&folder));
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .map(walkdir::DirEntry::into_path)
        .collect()
}

/// All content matches its digest.
fn check(folder: &Path, place: &str) {
    for file in files(&folder.join("store/blobs")) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with(".olmkit-partial-") {
            assert_eq!(sha256(&fs::read(&file).unwrap()).hex(), name, "{place}");
        }
    }
    if folder.join("store/oci-layout").exists() {
        let layout = Layout::open(&folder.join("store")).expect(place);
        for image in layout.index().expect(place).manifests {
            for blob in layout.reachable(&image).expect(place) {
                layout.open_blob(&blob).expect(place).verify().expect(place);
            }
        }
    }
    let file = folder.join("a.tar");
    if file.exists() {
        archive::read_oci(&file, &folder.join("read")).expect(place);
        fs::remove_dir_all(folder.join("read")).unwrap();
    }
    // The next one writes as if nothing had happened, and clears away what was left.
    killed::age(folder);
    write(folder);
    let left: Vec<PathBuf> = files(folder)
        .into_iter()
        .filter(|file| !file.starts_with(folder.join(killed::TEMPORARY)))
        .filter(|file| {
            file.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(".olmkit-partial-")
        })
        .collect();
    assert!(left.is_empty(), "{place}: {left:?}");
}

#[test]
fn a_store_and_an_archive_are_whole_wherever_the_writer_is_killed() {
    let Some(killed) = killed::at_each_call("killed::writer", |_| {}, check) else {
        return;
    };
    println!("killed {killed} times");
    assert!(killed > 60, "{killed}");
}
