//! Catalog commands against the recorded answers of opm 1.73.0.
//!
//! The inputs and answers are outside the repository: in `$OLMKIT_CORPUS`, else in `../shared/corpus` relative to the
//! workspace. If they are absent the tests print this and pass.

mod answers;
mod render;
mod templates;

use std::path::Path;

use olmkit::catalog::render::MigrateLevel;
use olmkit::catalog::render::reference::{ImageTemplate, Images, Options, Unpacked, render};
use olmkit::catalog::write::Format;
use olmkit::catalog::{order, write};

use test_support::corpus;

struct NoImages;

impl Images for NoImages {
    fn unpack(&self, reference: &str) -> Result<Unpacked, String> {
        Err(format!("no such image: {reference}"))
    }
}

/// Renders as `opm render` prints it, or the error text.
fn rendered(path: &Path, options: &Options, format: Format) -> Result<String, String> {
    let catalog =
        render(&[path.to_string_lossy().into_owned()], options, &NoImages).map_err(|error| match *error.source {
            olmkit::catalog::render::Error::Catalog(error) => error.opm_text(),
            other => other.to_string(),
        })?;
    let mut out = Vec::new();
    write::all(&order::blobs(catalog), format, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

/// In hexadecimal digits.
fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn migrated() -> Options {
    let template: ImageTemplate = "registry.example.com/{{.Package}}:{{.Name}}".parse().unwrap();
    Options {
        migrate: MigrateLevel::BundleObjectToCsvMetadata,
        image_template: Some(template),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Counts agreement and keeps the first disagreements for the message.
#[derive(Default)]
struct Tally {
    equal: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, name: &str, ours: &str, theirs: &str) {
        if ours == theirs {
            self.equal += 1;
        } else {
            let line = ours
                .lines()
                .zip(theirs.lines())
                .position(|(ours, theirs)| ours != theirs);
            let at = line.unwrap_or_else(|| ours.lines().count().min(theirs.lines().count()));
            let show = |text: &str| -> String { text.lines().nth(at).unwrap_or("<end>").chars().take(300).collect() };
            self.wrong.push(format!(
                "{name}: line {}\n    ours   {}\n    theirs {}",
                at + 1,
                show(ours),
                show(theirs)
            ));
        }
    }

    fn finish(self, what: &str) {
        println!("{what}: {} equal, {} different", self.equal, self.wrong.len());
        assert!(
            self.wrong.is_empty(),
            "{what}:\n{}",
            self.wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
        );
    }
}

fn lines_sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}
