//! Runs the `console` and `sh` blocks of pages. `UPDATE_GENERATED=1` writes the output of `console` blocks into the pages.
//!
//! In a `console` block, lines that begin with `$ ` are commands, and the other lines are their output. A line `...`
//! matches any lines. In an `sh` block each line is a command, which must not fail. These comments control a block:
//!
//! - `<!-- untested: REASON -->`: the block is not run.
//! - `<!-- tested by: FILE::FUNCTION -->`: another test runs these commands, such as one with a cluster.
//! - `<!-- run: COMMAND -->` runs a command that the page does not show.
//!
//! The commands of a page share a directory with the demo bundle and a catalog. Public registries are a registry on
//! loopback. kubectl and kustomize are scripts. The arguments of olmkit are checked in all blocks.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use test_support::demo_bundle::{CSV, folder};
use test_support::registry::{Registry, Setup};

/// The pages with `console` or `sh` blocks, except those that `dev/tutorial.sh` runs on a control plane.
const PAGES: [&str; 25] = [
    "CONTRIBUTING.md",
    "README.md",
    "crates/cli/README.md",
    "crates/testbed/README.md",
    "docs/README.md",
    "docs/guides/bundles.md",
    "docs/guides/catalogs.md",
    "docs/guides/ci.md",
    "docs/guides/cluster.md",
    "docs/guides/images.md",
    "docs/guides/olm-v1.md",
    "docs/guides/scaffold.md",
    "docs/guides/submit.md",
    "docs/guides/switch.md",
    "docs/guides/troubleshoot.md",
    "docs/guides/validate.md",
    "docs/memcached/install.md",
    "docs/memcached/reference.md",
    "docs/reference/configuration.md",
    "docs/reference/drop-in.md",
    "docs/reference/limits.md",
    "docs/reference/output.md",
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

/// Registries in the pages. Their images are in one registry on loopback.
const HOSTS: [&str; 3] = ["quay.io", "registry.example.com", "localhost:5000"];

/// Stands in for kustomize: prints the manifests in a directory.
const KUSTOMIZE: &str = "#!/bin/sh\ncat \"$2\"/*.yaml\n";

/// Stands in for kubectl: accepts manifests.
const KUBECTL: &str = "#!/bin/sh\ncat > /dev/null\n";

/// The directory of a reader.
struct Desk {
    folder: tempfile::TempDir,
    directory: PathBuf,
    /// `None` if no registry is installed.
    registry: Option<Registry>,
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
        for (name, text) in [("kustomize", KUSTOMIZE), ("kubectl", KUBECTL)] {
            let file = root.join(".bin").join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(root.join(".registries.conf"), "").unwrap();
        let directory = root.to_owned();
        Desk {
            folder,
            directory,
            registry: None,
        }
    }

    /// Starts the registry for all [`HOSTS`], if a page needs one.
    fn start_registry(&mut self) -> bool {
        if self.registry.is_none()
            && let Some(registry) = Registry::start(&Setup::default())
        {
            let hosts = HOSTS.map(|host| {
                format!(
                    "[[registry]]\nprefix = \"{host}\"\nlocation = \"{}\"\ninsecure = true\n",
                    registry.host()
                )
            });
            std::fs::write(self.folder.path().join(".registries.conf"), hosts.concat()).unwrap();
            self.registry = Some(registry);
        }
        self.registry.is_some()
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
            .env(
                "CONTAINERS_REGISTRIES_CONF",
                self.folder.path().join(".registries.conf"),
            )
            .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "Reader")))
            .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "reader@example.com")))
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

/// The commands of an `sh` block, with joined continuations.
fn lines_of(block: &[&str]) -> Vec<String> {
    let text = block.join("\n").replace("\\\n", " ");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Fails unless a file of the repository has the test that runs a block: `FILE::FUNCTION`, or a script.
fn exists(test: &str) {
    let (file, function) = test.split_once("::").unwrap_or((test, ""));
    let text =
        std::fs::read_to_string(test_support::repository(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let wanted = format!("fn {function}(");
    assert!(function.is_empty() || text.contains(&wanted), "{test} does not exist");
}

/// Runs a page. Returns the page with the output that the commands printed, and the reasons of blocks that were not run.
fn play(page: &str) -> (String, Vec<String>) {
    let mut desk = Desk::new();
    let (mut out, mut skipped) = (Vec::new(), Vec::new());
    let mut lines = page.lines().peekable();
    let mut reason = None;
    let (mut is_tested, mut needs_registry) = (false, false);
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        if let Some(text) = line.trim_start().strip_prefix("<!-- untested: ") {
            reason = Some(text.trim_end_matches("-->").trim().to_owned());
        }
        if let Some(test) = line.trim_start().strip_prefix("<!-- tested by: ") {
            exists(test.trim_end_matches("-->").trim());
            is_tested = true;
        }
        if line.trim() == "<!-- registry -->" {
            needs_registry = !desk.start_registry();
        }
        if let Some(command) = line.strip_prefix("<!-- run: ").filter(|_| !needs_registry) {
            desk.run(command.trim_end_matches("-->").trim());
        }
        let is_console = match line.trim_start() {
            "```console" => true,
            "```sh" => false,
            _ => continue,
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}```");
        let block: Vec<&str> = std::iter::from_fn(|| lines.next_if(|line| *line != end)).collect();
        let reason = reason.take();
        let is_skipped = reason.is_some() || std::mem::take(&mut is_tested) || needs_registry;
        skipped.extend(reason);
        if is_skipped || !is_console {
            out.extend(block.iter().map(ToString::to_string));
        }
        if is_skipped {
            continue;
        }
        let block: Vec<&str> = block
            .iter()
            .map(|line| line.strip_prefix(indent).unwrap_or(line))
            .collect();
        if !is_console {
            for command in lines_of(&block) {
                let printed = desk.run(&command);
                let error = printed
                    .lines()
                    .find(|line| line.starts_with("error: ") || line.starts_with("fatal: "));
                assert!(error.is_none(), "{command}: {printed}");
            }
            continue;
        }
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
        .filter(|page| {
            std::fs::read_to_string(page).is_ok_and(|text| text.contains("```console\n$ ") || text.contains("```sh\n"))
        })
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
