//! OLM v1's rules compared with the results of its code for real and synthetic bundles.

mod definitions;
mod profile;
mod refusals;
mod render;
mod resolve;

use std::path::Path;

use olmkit::bundle::load::{Limits, Tree};
use serde_json::Value;

/// The lines of a recording.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The files of a made-up bundle.
fn made_up(files: &Value) -> Tree {
    let files = files.as_object().unwrap().iter();
    Tree::from_files(files.map(|(path, text)| (path.as_str(), text.as_str().unwrap_or_default().as_bytes().to_vec())))
}

/// A real bundle, if it exists here, or by its name below the directory of `OLMKIT_OLMV1_BUNDLES`.
fn real(root: &Path, line: &Value, name: &str, input: &str) -> Option<Tree> {
    let folder = match line.get(input).and_then(Value::as_str) {
        Some(input) => root.join(input),
        None => Path::new(&std::env::var_os("OLMKIT_OLMV1_BUNDLES")?).join(line[name].as_str()?),
    };
    folder
        .exists()
        .then(|| Tree::from_dir(&folder, Limits::default()).unwrap())
}

/// Prints how many of the answers are equal, and fails for those that are not.
fn count(what: &str, asked: usize, wrong: &[String]) {
    println!("{what}: {} of {asked} equal", asked - wrong.len());
    assert!(
        wrong.is_empty(),
        "{what}: {} of {asked} differ\n{}",
        wrong.len(),
        wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}
