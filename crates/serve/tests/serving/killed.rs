//! A killed index build must not change the result of the next one.

use std::path::Path;

use olmkit_serve::source::{self, INDEX_FILE, Options};
use test_support::killed;

use crate::server::CATALOG;

fn write(folder: &Path) {
    let cache = folder.join("cache");
    let options = Options {
        cache: Some(&cache),
        ..Options::default()
    };
    let (index, _) = source::index(&folder.join("configs"), options).unwrap();
    assert_eq!(index.packages().len(), 1);
}

/// Helper process that the test below starts and kills.
#[test]
fn writer() {
    if let Some(folder) = killed::folder() {
        write(Path::new(&folder));
    }
}

fn prepare(folder: &Path) {
    std::fs::create_dir(folder.join("configs")).unwrap();
    std::fs::write(folder.join("configs/p.yaml"), CATALOG).unwrap();
    killed::age(folder);
}

#[test]
fn an_index_is_whole_wherever_its_builder_is_killed() {
    let check = |folder: &Path, place: &str| {
        let right = source::bytes(&folder.join("configs")).unwrap();
        let file = folder.join("cache").join(INDEX_FILE);
        if file.exists() {
            assert_eq!(std::fs::read(&file).unwrap(), right, "{place}");
        }
        killed::age(&folder.join("cache"));
        write(folder);
        assert_eq!(std::fs::read(&file).unwrap(), right, "{place}");
        let names = std::fs::read_dir(folder.join("cache")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        let begins = |prefix: &str| names.iter().any(|name| name.to_string_lossy().starts_with(prefix));
        assert!(!begins(".index-"), "{place}: {names:?}");
    };
    let Some(killed) = killed::at_each_call("killed::writer", prepare, check) else {
        return;
    };
    println!("killed {killed} times");
    assert!(killed > 10, "{killed}");
}
