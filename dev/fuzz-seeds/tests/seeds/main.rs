//! Each fuzz target compiles, and accepts its seeds. `fuzz/run.sh` runs them with a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[allow(warnings, clippy::all, clippy::pedantic, clippy::restriction)]
mod targets;

type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("arguments", targets::arguments::run),
    ("bundle", targets::bundle::run),
    ("catalog", targets::catalog::run),
    ("catalog_index", targets::catalog_index::run),
    ("cel", targets::cel::run),
    ("clone", targets::clone::run),
    ("commands", targets::commands::run),
    ("decode", targets::decode::run),
    ("definition", targets::definition::run),
    ("images", targets::images::run),
    ("picture", targets::picture::run),
    ("policy", targets::policy::run),
    ("reader", targets::reader::run),
    ("registry", targets::registry::run),
    ("repository", targets::repository::run),
];

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

/// The files of a directory. None if it does not exist.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

#[test]
fn every_target_is_listed() {
    let files = entries(&directory("fuzz_targets"));
    let files: BTreeSet<_> = files
        .iter()
        .map(|file| file.file_stem().unwrap().to_str().unwrap())
        .collect();
    let listed: BTreeSet<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, files);
}

#[test]
fn targets_accept_their_seeds() {
    for (name, target) in TARGETS {
        let mut inputs = vec![Vec::new(), b"a: 1\n".to_vec()];
        inputs.extend(
            entries(&directory(&format!("seeds/{name}")))
                .iter()
                .map(|file| fs::read(file).unwrap()),
        );
        if *name == "commands" {
            // The first byte selects the command.
            inputs.extend((0..64).map(|first| vec![first]));
        }
        println!("{name}: {} inputs", inputs.len());
        for input in inputs {
            target(&input);
        }
    }
}
