//! Runs the `console` blocks of pages and compares their output. `UPDATE_GENERATED=1` writes it into the pages.
//!
//! Lines that begin with `$ ` are commands, and the other lines are their output. A line `...` matches any lines. A block
//! below `<!-- untested: REASON -->` is not run. `<!-- run: COMMAND -->` runs a command that the page does not show. The
//! commands of a page share a directory with the demo bundle and a catalog. Of all other blocks, only the arguments of
//! olmkit are checked.

use std::path::PathBuf;
use std::process::Command;

use test_support::demo_bundle::{CSV, folder};

/// The pages with `console` blocks, except those that `dev/tutorial.sh` runs on a control plane.
const PAGES: [&str; 17] = [
    "README.md",
    "crates/testbed/README.md",
    "docs/guides/bundles.md",
    "docs/guides/catalogs.md",
    "docs/guides/ci.md",
    "docs/guides/cluster.md",
    "docs/guides/images.md",
    "docs/guides/olm-v1.md",
    "docs/guides/scaffold.md",
    "docs/guides/switch.md",
    "docs/guides/troubleshoot.md",
    "docs/guides/validate.md",
    "docs/memcached/reference.md",
    "docs/reference/configuration.md",
    "docs/start/install.md",
    "docs/start/operator.md",
    "docs/start/quickstart.md",
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
            .arg(format!(
                "exec 2>&1\n{command}\nstatus=$?\npwd > '{}'\nexit $status",
                place.display()
            ))
            .current_dir(&self.directory)
            .env("PATH", format!("{}:{path}", self.folder.path().join(".bin").display()))
            .env("HOME", self.folder.path())
            .env("OLMKIT_IMAGE_STORE", self.folder.path().join(".store"))
            .env("KUBECONFIG", self.folder.path().join(".none"))
            // All requests go to a proxy that does not exist.
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("HTTP_PROXY", "http://127.0.0.1:9")
            .env("SOURCE_DATE_EPOCH", "0")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("OLMKIT_SOURCE")
            .output()
            .unwrap();
        if let Ok(directory) = std::fs::read_to_string(&place) {
            self.directory = directory.trim().into();
        }
        let text = String::from_utf8(output.stdout).unwrap();
        // 2 is a usage error, 127 an unknown command.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {text}");
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
        if let Some(text) = line.trim_start().strip_prefix("<!-- untested: ") {
            reason = Some(text.trim_end_matches("-->").trim().to_owned());
        }
        if let Some(command) = line.strip_prefix("<!-- run: ") {
            desk.run(command.trim_end_matches("-->").trim());
        }
        if line.trim_start() != "```console" {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}```");
        let block: Vec<&str> = std::iter::from_fn(|| lines.next_if(|line| *line != end)).collect();
        if let Some(reason) = reason.take() {
            skipped.push(reason);
            out.extend(block.iter().map(ToString::to_string));
            continue;
        }
        let block: Vec<&str> = block
            .iter()
            .map(|line| line.strip_prefix(indent).unwrap_or(line))
            .collect();
        let starts: Vec<usize> = (0..block.len()).filter(|at| block[*at].starts_with("$ ")).collect();
        for (number, start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(block.len());
            out.push(format!("{indent}{}", block[*start]));
            let printed = desk.run(&block[*start][2..]);
            let found: Vec<&str> = printed.lines().collect();
            let wanted = &block[start + 1..end];
            let shown = if fits(wanted, &found) { wanted } else { &found[..] };
            out.extend(shown.iter().map(|line| format!("{indent}{line}").trim_end().to_owned()));
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

/// A page that is not listed, or has no commands, would pass the test above.
#[test]
fn every_page_with_console_blocks_is_listed() {
    let root = test_support::repository("");
    let mut found: Vec<String> = super::pages()
        .into_iter()
        .filter(|page| std::fs::read_to_string(page).is_ok_and(|text| text.contains("```console\n$ ")))
        .filter_map(|page| page.strip_prefix(&root).ok()?.to_str().map(str::to_owned))
        .filter(|page| !page.starts_with("docs/tutorial/") && page != "docs/guides/rust-operators.md")
        .collect();
    found.sort();
    assert_eq!(found, PAGES);
}

/// The lines of `sh` and `console` blocks, with joined continuations and without prompts and outputs.
fn commands(page: &str) -> Vec<String> {
    let mut language = None;
    let mut found: Vec<String> = Vec::new();
    let mut continues = false;
    for line in page.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("```") {
            language = language.is_none().then_some(name);
            continue;
        }
        let command = match language {
            Some("sh") => line,
            Some("console") if continues => line,
            Some("console") if line.starts_with("$ ") => &line[2..],
            _ => continue,
        };
        let text = command.trim_end_matches('\\');
        match found.last_mut().filter(|_| continues) {
            Some(last) => last.push_str(text),
            None => found.push(text.to_owned()),
        }
        continues = command.ends_with('\\');
    }
    found
}

/// The arguments of each call of olmkit in a command line.
fn calls(command: &str) -> Vec<Vec<String>> {
    let words = crate::help::shlex(command).into_iter().filter(|word| !word.is_empty());
    let words: Vec<String> = words.take_while(|word| !word.starts_with('#')).collect();
    let parts = words.split(|word| ["|", "&&", ";", "&"].contains(&word.as_str()));
    let calls = parts.filter_map(|part| {
        let start = part
            .iter()
            .position(|word| !word.contains('=') || word.starts_with('-'))?;
        let own = part[start..]
            .split(|word| [">", ">>", "2>"].contains(&word.as_str()))
            .next()?;
        (own.first()? == "olmkit").then(|| own[1..].to_vec())
    });
    calls.collect()
}

#[test]
fn calls_of_olmkit_are_found() {
    assert_eq!(
        commands("```sh\na \\\n  b\n```\n```console\n$ c\nd\n```\n"),
        ["a b", "c"]
    );
    let found = calls("A=1 olmkit x --y='a b' > f # olmkit no");
    assert_eq!(found, [["x", "--y=a b"]]);
    assert_eq!(calls("kubectl get | olmkit a && olmkit b").len(), 2);
}

/// Examples must remain valid as flags change, also those that need a cluster or a registry.
#[test]
fn every_call_of_olmkit_on_a_page_has_valid_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for page in super::pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for call in commands(&text).iter().flat_map(|command| calls(command)) {
            let output = Command::new(env!("CARGO_BIN_EXE_olmkit"))
                .args(&call)
                .arg("--help")
                .current_dir(folder.path())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {call:?}: {errors}", page.display());
            checked += 1;
        }
    }
    println!("{checked} calls of olmkit have valid arguments");
    assert!(checked > 60, "only {checked} calls found");
}
