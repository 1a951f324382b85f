//! Runs the `console` blocks of pages and compares their output. `UPDATE_GENERATED=1` writes it into the pages.
//!
//! Lines that begin with `$ ` are commands, the other lines are their output. A line `...` matches any lines. A block
//! below `<!-- untested: REASON -->` is not run. The commands of a page share a directory with the demo bundle and a
//! catalog.

use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::demo_bundle::{CSV, folder};

/// The pages whose commands need no cluster and no network.
const PAGES: [&str; 6] = [
    "README.md",
    "docs/start/install.md",
    "docs/start/quickstart.md",
    "docs/guides/ci.md",
    "docs/guides/switch.md",
    "docs/guides/troubleshoot.md",
];

const CATALOG: &str = "\
schema: olm.package
name: demo
defaultChannel: stable
---
schema: olm.channel
package: demo
name: stable
entries:
  - {name: demo.v0.0.1}
  - {name: demo.v0.0.2, replaces: demo.v0.0.1}
  - {name: demo.v0.1.0, replaces: demo.v0.0.2}
---
schema: olm.bundle
name: demo.v0.0.1
package: demo
image: quay.io/example/demo-bundle:v0.0.1
properties:
  - {type: olm.package, value: {packageName: demo, version: 0.0.1}}
---
schema: olm.bundle
name: demo.v0.0.2
package: demo
image: quay.io/example/demo-bundle:v0.0.2
properties:
  - {type: olm.package, value: {packageName: demo, version: 0.0.2}}
---
schema: olm.bundle
name: demo.v0.1.0
package: demo
image: quay.io/example/demo-bundle:v0.1.0
properties:
  - {type: olm.package, value: {packageName: demo, version: 0.1.0}}
";

/// A directory as a reader has it.
struct Desk {
    folder: tempfile::TempDir,
    directory: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let folder = folder(&[(CSV, "minKubeVersion: 1.25.0", "minKubeVersion: v1.25")]);
        let root = folder.path();
        std::fs::rename(root.join("demo"), root.join("bundle")).unwrap();
        std::fs::create_dir(root.join("catalog")).unwrap();
        std::fs::write(root.join("catalog/demo.yaml"), CATALOG).unwrap();
        let earlier = super::folder(&[]);
        std::fs::rename(earlier.path().join("demo"), root.join("old")).unwrap();
        std::fs::create_dir(root.join(".bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_olmkit"), root.join(".bin/olmkit")).unwrap();
        let directory = root.to_owned();
        Desk { folder, directory }
    }

    /// Runs one command in bash and returns its output, errors included.
    fn run(&mut self, command: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let place = self.folder.path().join(".bin/pwd");
        let output = Command::new("bash")
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}\npwd > '{}'", place.display()))
            .current_dir(&self.directory)
            .env("PATH", format!("{}:{path}", self.folder.path().join(".bin").display()))
            .env("HOME", self.folder.path())
            .env_remove("CLICOLOR_FORCE")
            .output()
            .unwrap();
        if let Ok(directory) = std::fs::read_to_string(&place) {
            self.directory = directory.trim().into();
        }
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("Usage: "), "{command}: {text}");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }
}

/// Returns true if `wanted`, in which lines `...` match any lines, fits.
fn fits(wanted: &[&str], found: &[&str]) -> bool {
    match wanted.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => (0..=found.len()).any(|start| fits(rest, &found[start..])),
        Some((line, rest)) => found.first() == Some(line) && fits(rest, &found[1..]),
    }
}

/// Runs a page. Returns the page with the output that the commands printed, and the reasons of blocks that were not run.
fn play(page: &str) -> (String, Vec<String>) {
    let mut desk = Desk::new();
    let (mut out, mut skipped) = (Vec::new(), Vec::new());
    let mut lines = page.lines().peekable();
    let mut reason = None;
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        if let Some(text) = line.strip_prefix("<!-- untested: ") {
            reason = Some(text.trim_end_matches("-->").trim().to_owned());
        }
        if line != "```console" {
            continue;
        }
        let block: Vec<&str> = std::iter::from_fn(|| lines.next_if(|line| *line != "```")).collect();
        if let Some(reason) = reason.take() {
            skipped.push(reason);
            out.extend(block.iter().map(ToString::to_string));
            continue;
        }
        let starts: Vec<usize> = (0..block.len()).filter(|at| block[*at].starts_with("$ ")).collect();
        for (number, start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(block.len());
            out.push(block[*start].to_owned());
            let printed = desk.run(&block[*start][2..]);
            let found: Vec<&str> = printed.lines().collect();
            let wanted = &block[start + 1..end];
            if fits(wanted, &found) {
                out.extend(wanted.iter().map(ToString::to_string));
            } else {
                out.extend(found.iter().map(ToString::to_string));
            }
        }
    }
    (out.join("\n") + "\n", skipped)
}

#[test]
fn commands_print_the_output_that_pages_show() {
    let mut skipped = 0;
    for page in PAGES {
        let path = test_support::repository(page);
        let before = std::fs::read_to_string(&path).unwrap();
        let (after, reasons) = play(&before);
        for reason in &reasons {
            println!("{page}: not run: {reason}");
        }
        skipped += reasons.len();
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::write(&path, &after).unwrap();
            continue;
        }
        let difference = similar::TextDiff::from_lines(&before, &after);
        assert!(
            before == after,
            "{page} shows other output: run UPDATE_GENERATED=1 cargo test -p olmkit-cli --test command documentation\n{}",
            difference.unified_diff()
        );
    }
    assert!(skipped <= 20, "{skipped} blocks are not run");
}

#[test]
fn dots_stand_for_any_lines() {
    let found = ["a", "b", "c"];
    assert!(fits(&["a", "...", "c"], &found) && fits(&["...", "c"], &found) && fits(&["...", "a", "b", "c"], &found));
    assert!(!fits(&["a", "...", "b"], &found) && !fits(&["a", "b"], &found));
}

/// A page without commands would pass the test above.
#[test]
fn every_listed_page_has_commands() {
    for page in PAGES {
        let path = test_support::repository(page);
        let text = std::fs::read_to_string(Path::new(&path)).unwrap();
        assert!(text.contains("```console\n$ "), "{page}");
    }
}
