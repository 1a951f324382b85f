//! Any files as a bundle: loading it and running every rule ends without a crash.
//!
//! The input is a list of files: a line `@ PATH` begins one. Bytes before the first such line are the ClusterServiceVersion.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::bundle::load::{self, Tree};
use olmkit::validate::{Options, Profile, Selector, validate};

const MOST_FILES: usize = 20;

fuzz_target!(|data: &[u8]| {
    let tree = Tree::from_files(files(data));
    for (profile, selector) in [
        (Profile::OperatorSdk142, "name!=multiarch"),
        (Profile::Api045, "suite=operatorframework"),
    ] {
        let options = Options {
            profile,
            selector: Selector::parse(selector).expect("a selector"),
            lints: true,
            ..Options::default()
        };
        let outcome = validate(&load::read(tree.clone(), "bundle"), &options);
        // The result "failed" has a reason.
        assert!(outcome.passed() || outcome.fatal.is_some() || outcome.findings().next().is_some());
    }
});

fn files(data: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![(String::from("manifests/csv.yaml"), Vec::new())];
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let path = line.strip_prefix(b"@ ").and_then(|path| std::str::from_utf8(path).ok());
        match path {
            Some(path) if files.len() < MOST_FILES => files.push((path.trim().to_owned(), Vec::new())),
            _ => {
                if let Some((_, content)) = files.last_mut() {
                    content.extend_from_slice(line);
                }
            }
        }
    }
    files.retain(|(path, _)| !path.is_empty());
    files
}
