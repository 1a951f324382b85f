//! Untrusted input reaches the terminal only as plain text: every command over hostile bundles, catalogs, images and
//! API server answers, in every human-readable format.

mod exhaust;
mod inputs;
mod links;
mod names;
mod repeated;
mod repositories;
mod safety;

use std::collections::BTreeSet;
use std::process::Output;
use std::time::Duration;

use clap::CommandFactory as _;
use inputs::{HOSTILE, Inputs};
use olmkit::object::UntrustedText;

/// Consumer of an output.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// People: nothing that commands a terminal, no line that is a workflow command.
    Text,
    /// GitHub's runner: workflow commands of ours only.
    Workflow,
    /// Programs, which decode the escapes of JSON and YAML: no raw control characters.
    Document,
}

/// Runs a command in the directory of the inputs.
fn run(inputs: &Inputs, arguments: &[&str]) -> Output {
    assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(arguments)
        .current_dir(inputs.path(""))
        .env("HOME", inputs.path("home"))
        .env("OLMKIT_IMAGE_STORE", inputs.path("store"))
        .env("KUBECONFIG", inputs.path("kubeconfig"))
        .write_stdin(inputs.manifests())
        .timeout(Duration::from_secs(60))
        .output()
        .unwrap()
}

/// Violations in an output.
fn faults(arguments: &[&str], output: &Output, form: Form) -> Vec<String> {
    let command = arguments.join(" ").escape_debug().to_string();
    let mut faults = Vec::new();
    if !matches!(output.status.code(), Some(0..=2)) {
        let said = String::from_utf8_lossy(&output.stderr).escape_debug().to_string();
        faults.push(format!("{command}: {}: {said}", output.status));
    }
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8_lossy(bytes);
        let document = name == "stdout" && form == Form::Document;
        let is_bad = |c: char| {
            let escaped = if document { c < ' ' } else { UntrustedText::is_unsafe(c) };
            escaped && !matches!(c, '\n' | '\t')
        };
        if let Some(at) = text.find(is_bad) {
            let from = text.floor_char_boundary(at.saturating_sub(60));
            let to = text.ceil_char_boundary((at + 60).min(text.len()));
            faults.push(format!("{command}: {name}: {}", text[from..to].escape_debug()));
        }
        for line in text.lines().filter(|_| !document) {
            let ours = name == "stdout"
                && form == Form::Workflow
                && ["::error ", "::warning ", "::notice "]
                    .iter()
                    .any(|start| line.starts_with(start));
            let is_command = line.trim_start().starts_with("::") || line.contains("##[");
            if is_command && !ours {
                faults.push(format!("{command}: {name}: {}", line.escape_debug()));
            }
        }
    }
    faults
}

/// The commands, with placeholders for the inputs, and the format of their output.
fn commands() -> Vec<(Form, Vec<&'static str>)> {
    use Form::{Document, Text, Workflow};
    let h = HOSTILE;
    let mut all = vec![
        (Text, vec!["bundle", "validate", "--recursive", "bundles"]),
        (Text, vec!["bundle", "validate", "--recursive", "bundles", "--strict"]),
        (
            Workflow,
            vec!["bundle", "validate", "--recursive", "bundles", "-o", "github"],
        ),
        (Text, vec!["bundle", "validate", "--recursive", "bundles", "-o", "json"]),
        (
            Text,
            vec!["bundle", "validate", "--recursive", "bundles", "-o", "sarif"],
        ),
        (
            Text,
            vec!["bundle", "validate", "--recursive", "bundles", "-o", "concise"],
        ),
        (
            Text,
            vec!["bundle", "validate", "--recursive", "bundles", "-o", "junit"],
        ),
        (
            Text,
            vec![
                "bundle",
                "validate",
                "bundles/names",
                "--baseline",
                "bundles/names/metadata/annotations.yaml",
            ],
        ),
        (Text, vec!["bundle", "validate", "bundles/plain", "--ignore", h]),
        (
            Text,
            vec!["config", "--config", "bundles/names/metadata/annotations.yaml"],
        ),
        (Text, vec!["config", "--config", h]),
        (Text, vec!["version"]),
        (Text, vec!["alpha", h]),
        (Text, vec!["catalog", "validate", "catalog", "-o", "concise"]),
        (Text, vec!["catalog", "validate", "catalog", "-o", "junit"]),
        (Text, vec!["bundle", "validate", "oci:layout"]),
        (Text, vec!["bundle", "validate", h]),
        (
            Text,
            vec!["bundle", "validate", "bundles/plain", "--against", "catalog"],
        ),
        (
            Text,
            vec!["bundle", "validate", "bundles/plain", "--select-optional", h],
        ),
        (Text, vec!["scorecard", "bundles/plain", "--built-in"]),
        (Text, vec!["scorecard", "bundles/names", "--built-in"]),
        (Text, vec!["scorecard", "bundles/scorecard"]),
        (Text, vec!["scorecard", "bundles/scorecard", "--list"]),
        (Text, vec!["scorecard", "bundles/scorecard", "-o", "json"]),
        (Text, vec!["scorecard", "bundles/scorecard", "-o", "xunit"]),
        (Text, vec!["scorecard", "bundles/scorecard", "-o", "findings"]),
        (Text, vec!["scorecard", "bundles/plain", "--built-in", "-o", "json"]),
        (Text, vec!["scorecard", "bundles/plain", "--built-in", "-o", "findings"]),
        (Text, vec!["scorecard", "bundles/plain", "--built-in", "-o", "sarif"]),
        (
            Workflow,
            vec!["scorecard", "bundles/names", "--built-in", "-o", "github"],
        ),
        (
            Document,
            vec!["bundle", "validate", "bundles/names", "--diff", "--unsafe-fixes"],
        ),
        (Text, vec!["bundle", "validate", "oci:layout", "--fix"]),
        (Text, vec!["scorecard", "bundles/plain", "--built-in", "-o", "xunit"]),
        (Text, vec!["scorecard", "bundles/plain", "--config", h, "-l", h]),
        (Text, vec!["scorecard", "bundles/plain", "--built-in", "-l", h]),
        (Text, vec!["scorecard", h]),
        (
            Text,
            vec!["bundle", "validate", "--recursive", "bundles", "--profile", "olmv1"],
        ),
        (Text, vec!["bundle", "diff", "bundles/names", "bundles/plain"]),
        (
            Text,
            vec!["crd", "diff", "bundles/plain/manifests", "bundles/names/manifests"],
        ),
        (
            Document,
            vec![
                "bundle",
                "render",
                "--olmv1",
                "bundles/names",
                "--install-namespace",
                "demo",
            ],
        ),
        (
            Document,
            vec!["bundle", "rbac", "--for-installer", "bundles/names", "-n", "demo"],
        ),
        (
            Document,
            vec![
                "bundle",
                "rbac",
                "--for-installer",
                "bundles/plain",
                "-n",
                h,
                "--extension",
                h,
            ],
        ),
        (Document, vec!["bundle", "unpack", "bundles/names"]),
        (Text, vec!["bundle", "unpack", "bundles/names", "-o", "unpacked"]),
        (Text, vec!["bundle", "unpack", "oci:layout"]),
        (
            Document,
            vec![
                "generate",
                "bundle",
                "--package",
                "demo",
                "--version",
                "0.1.0",
                "--stdout",
            ],
        ),
        (
            Text,
            vec!["generate", "bundle", "--package", "demo", "--version", "0.1.0"],
        ),
        (Text, vec!["generate", "bundle", "--package", h, "--version", "0.1.0"]),
        (Text, vec!["generate", "kustomize", "manifests", "--package", h]),
        (
            Text,
            vec![
                "generate",
                "kustomize",
                "manifests",
                "--package",
                "demo",
                "--display-name",
                h,
            ],
        ),
        (Text, vec!["repo", "check", "--repo", "repository"]),
        (Text, vec!["repo", "check", "--repo", "repository", "-o", "json"]),
        (Text, vec!["repo", "check", "--repo", "repository", "-o", "sarif"]),
        (
            Text,
            vec![
                "repo",
                "check",
                "--repo",
                "repository",
                "-o",
                "pipeline-json",
                "--strict-compat",
            ],
        ),
        (Workflow, vec!["repo", "check", "--repo", "repository", "-o", "github"]),
        (
            Text,
            vec!["repo", "check", "--repo", "repository", "--suite", "operatorhub"],
        ),
        (
            Text,
            vec!["repo", "check", "--repo", "repository", "--suite", "preflight"],
        ),
        (Text, vec!["repo", "check", "--image", h]),
        (Text, vec!["repo", "check", "--image", "dockerfile:Dockerfile"]),
        (Text, vec!["repo", "onboard", h, "--repo", "repository"]),
        (
            Text,
            vec!["repo", "onboard", "names", "--repo", "repository", "--catalogs", h],
        ),
        (
            Text,
            vec![
                "repo",
                "onboard",
                "hello",
                "--repo",
                "repository",
                "--image-ref-template",
                "r.io/{{.Name}}",
            ],
        ),
        (Text, vec!["repo", "release", "bundles/names", "--repo", "repository"]),
        (Text, vec!["repo", "release", h, "--repo", "repository", "--image", h]),
        (Text, vec!["repo", "check", "--repo", h, "--operator", h]),
        (Text, vec!["repo", "check", "--repo", "repository", "--base", h]),
        (Text, vec!["repo", "check", "--repo", "repository", "--skip", h]),
        (Text, vec!["repo", "check", "--repo", "repository", "--ocp-versions", h]),
        (Text, vec!["explain", h]),
        (Text, vec!["explain", "CSV-1"]),
        (Document, vec!["completion", "bash"]),
        (Text, vec!["completion", h]),
        (Text, vec![h]),
        (Text, vec!["--limit", h, "explain"]),
        (Text, vec!["image", "inspect", "oci:layout"]),
        (Text, vec!["image", "inspect", "oci:layout", "-o", "json"]),
        (Text, vec!["image", "inspect", "oci:broken"]),
        (Text, vec!["image", "digest", "oci:layout"]),
        (Text, vec!["image", "diff", "oci:layout", "oci:other"]),
        (Text, vec!["image", "diff", "oci:layout", "oci:other", "-o", "json"]),
        (Text, vec!["image", "copy", "oci:layout", "oci-archive:copied.tar"]),
        (Text, vec!["image", "copy", "oci:broken", "oci-archive:broken.tar"]),
        (Text, vec!["image", "save", "oci:layout", "-o", "saved.tar"]),
        (Text, vec!["image", "load", "copied.tar", "-t", "registry.test/a:v1"]),
        (Text, vec!["image", "load", "copied.tar"]),
        (Text, vec!["image", "push", "registry.test/none:v1"]),
        (
            Text,
            vec!["image", "build", "bundle", "bundles/plain", "-t", "registry.test/b:v1"],
        ),
        (
            Text,
            vec!["image", "build", "bundle", "bundles/names", "-t", "registry.test/b:v1"],
        ),
        (
            Text,
            vec!["image", "build", "catalog", "catalog", "-t", "registry.test/c:v1"],
        ),
        (
            Text,
            vec!["image", "build", "directory", "files", "-t", "registry.test/d:v1"],
        ),
        (
            Text,
            vec![
                "image",
                "build",
                "files",
                "--add",
                "files:/f",
                "-t",
                "registry.test/f:v1",
            ],
        ),
        (
            Text,
            vec!["image", "build", "operator", "files/plain", "-t", "registry.test/o:v1"],
        ),
        (
            Text,
            vec![
                "image",
                "build",
                "helper",
                "--binary",
                "files/plain",
                "-t",
                "registry.test/h:v1",
            ],
        ),
        (Text, vec!["catalog", "init", h, "-d", "nosuch"]),
        (Document, vec!["catalog", "init", h]),
        (Document, vec!["catalog", "init", h, "-o", "yaml"]),
        (Text, vec!["catalog", "dockerfile", "catalog"]),
        (Text, vec!["catalog", "dockerfile", "catalog"]),
        (
            Text,
            vec!["catalog", "add", "bundles/plain", "--to", "catalog", "--channel", h],
        ),
        (Text, vec!["catalog", "deprecate", h, "--message", h, "--in", "catalog"]),
        (
            Text,
            vec!["catalog", "template", "convert", "basic", "broken/object/catalog.json"],
        ),
        (
            Document,
            vec!["catalog", "template", "convert", "basic", "catalog/catalog.json"],
        ),
        (Document, vec!["catalog", "template", "render", "template.json"]),
        (
            Document,
            vec!["catalog", "template", "render", "template.json", "-o", "mermaid"],
        ),
        (
            Text,
            vec!["catalog", "template", "render", "semver", "catalog/catalog.json"],
        ),
        (Text, vec!["catalog", "path", "catalog", "--from", h]),
        (Text, vec!["catalog", "path", "catalog", "--package", h, "--from", h]),
        (
            Text,
            vec!["catalog", "validate", "catalog", "--crd-safety", "--bundles", "bundles"],
        ),
        (
            Text,
            vec!["catalog", "validate", "catalog", "--crd-safety", "--bundles", h],
        ),
        (
            Text,
            vec![
                "catalog",
                "resolve",
                "--olmv1",
                "demo",
                "catalog",
                "other",
                "--channels",
                h,
            ],
        ),
        (
            Document,
            vec!["catalog", "resolve", "--olmv1", "demo", "catalog", "-o", "json"],
        ),
        (Text, vec!["catalog", "resolve", "--olmv1", h, h, "--version", h]),
        (
            Text,
            vec!["catalog", "resolve", "--olmv1", "demo", "catalog", "--installed", h],
        ),
        (Text, vec!["catalog", "diff", "catalog", "other"]),
        (Text, vec!["catalog", "diff", "other", "catalog", "-o", "json"]),
        (Text, vec!["catalog", "images", "catalog", "-o", "json"]),
        (Text, vec!["catalog", "migrate", "catalog", "migrated"]),
        (Text, vec!["catalog", "serve", "broken/object"]),
        (Text, vec!["opm", "alpha", "list", "bundles", "catalog"]),
        (Text, vec!["opm", "validate", "broken/object"]),
        (Text, vec!["opm", h]),
        (Text, vec!["init", "--domain", h, "--directory", "new"]),
        (Text, vec!["init", "--project-name", h, "--directory", "new"]),
        (Text, vec!["create", "api", "--group", h, "--version", h, "--kind", h]),
        (Text, vec!["delete", "api", "--group", h, "--version", h, "--kind", h]),
        (
            Text,
            vec![
                "create",
                "webhook",
                "--version",
                h,
                "--kind",
                h,
                "--conversion",
                "--spoke",
                h,
            ],
        ),
        (
            Text,
            vec!["delete", "webhook", "--group", h, "--version", h, "--kind", h],
        ),
        (Text, vec!["update", "--directory", h, "--dry-run"]),
        (Text, vec!["adopt", "--domain", h]),
        (Text, vec!["edit", "--directory", h, "--multigroup"]),
        (Text, vec!["image", "list"]),
        (Text, vec!["image", "rm", h]),
        (Text, vec!["image", "prune"]),
        (Text, vec!["diagnose", h]),
        (Text, vec!["migrate", "check"]),
        (Text, vec!["migrate", "check", "-n", h]),
        (Text, vec!["migrate", "check", "-o", "json"]),
        (Document, vec!["migrate", "plan"]),
        (Text, vec!["cleanup", h, "--timeout", "1s"]),
        (Text, vec!["cleanup", h, "--olm", "v1", "--timeout", "1s"]),
        (Text, vec!["cleanup", "plain", "--olm", "v1", "--timeout", "1s"]),
        (
            Text,
            vec!["run", "bundle", "bundles/plain", "--olm", "v1", "--timeout", "1s"],
        ),
        (
            Text,
            vec!["run", "bundle", "bundles/names", "--olm", "v1", "--push-to", h],
        ),
        (
            Text,
            vec![
                "run",
                "bundle-upgrade",
                "bundles/plain",
                "--olm",
                "v1",
                "--timeout",
                "1s",
            ],
        ),
        (Text, vec!["extension", "install", h, "--timeout", "1s"]),
        (Text, vec!["extension", "install", "plain", "--version", h]),
        (Text, vec!["extension", "install", "plain", "--catalog", h]),
        (Text, vec!["extension", "status"]),
        (Text, vec!["extension", "status", h]),
        (Text, vec!["extension", "diff", h]),
        (Text, vec!["extension", "diff", "plain", "--version", h]),
        (Text, vec!["extension", "uninstall", h, "--timeout", "1s"]),
        (Text, vec!["olm", "status", "--timeout", "1s"]),
        (Text, vec!["olm", "install", "--timeout", "1s"]),
        (Text, vec!["olm", "uninstall", "--timeout", "1s"]),
        (Text, vec!["run", "bundle", "bundles/plain", "--timeout", "1s"]),
        (Text, vec!["run", "bundle-upgrade", "bundles/plain", "--timeout", "1s"]),
        (Text, vec!["subscribe", h, "--timeout", "1s"]),
    ];
    all.extend(formats());
    for catalog in inputs::CATALOGS {
        for command in [
            &["catalog", "validate"][..],
            &["opm", "validate"],
            &["catalog", "validate", "-o", "json"],
            &["catalog", "list", "packages"],
            &["catalog", "list", "channels"],
            &["catalog", "list", "bundles"],
            &["catalog", "images"],
            &["catalog", "diff", "plain"],
        ] {
            all.push((Text, command.iter().copied().chain([*catalog]).collect()));
        }
        for command in [
            &["catalog", "graph"][..],
            &["catalog", "graph", "-o", "dot"],
            &["catalog", "graph", "-o", "svg"],
            &["catalog", "graph", "--draw-v0-semantics"],
            &["catalog", "render"],
            &["catalog", "render", "-o", "yaml"],
            &["catalog", "validate", "-o", "opm-yaml"],
        ] {
            all.push((Document, command.iter().copied().chain([*catalog]).collect()));
        }
    }
    all
}

/// The output formats that the commands above do not have.
fn formats() -> Vec<(Form, Vec<&'static str>)> {
    use Form::{Document, Text, Workflow};
    let listed = [
        (Text, "bundle diff bundles/names bundles/plain", "json markdown"),
        (Text, "bundle validate bundles/names", "full json-alpha1"),
        (Text, "catalog validate catalog", "full sarif opm-json"),
        (Workflow, "catalog validate catalog", "github"),
        (Document, "catalog migrate catalog migrated-again", "json yaml"),
        (Document, "catalog template render template.json", "yaml"),
        (Document, "catalog template convert basic catalog/catalog.json", "yaml"),
        (Text, "catalog diff catalog other", "full"),
        (Text, "catalog path catalog --from x", "json"),
        (Text, "repo check --repo repository", "full concise junit"),
        (
            Text,
            "repo check --suite preflight --repo repository --operator hello --bundle 0.0.1",
            "preflight-json",
        ),
        (Text, "version", "json"),
        (Text, "olm status", "json"),
        (Text, "olm uninstall", "json"),
        (Text, "run bundle bundles/plain", "json"),
        (Text, "run bundle-upgrade bundles/plain", "json"),
        (Text, "subscribe plain", "json"),
        (Text, "diagnose plain", "json"),
        (Text, "cleanup plain", "json"),
        (Text, "extension install plain", "json"),
        (Text, "extension status plain", "json"),
        (Text, "extension uninstall plain", "json"),
    ];
    let mut all = Vec::new();
    for (form, command, formats) in listed {
        for format in formats.split(' ') {
            let arguments = command.split(' ').chain(["-o", format]);
            all.push((form, arguments.collect()));
        }
    }
    all
}

#[test]
fn no_command_lets_untrusted_text_command_a_terminal_or_a_workflow() {
    let inputs = Inputs::new();
    let faults: Vec<String> = commands()
        .iter()
        .flat_map(|(form, arguments)| faults(arguments, &run(&inputs, arguments), *form))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Labels, images and errors of scorecard's tests appear in each format, also in lines that would begin as workflow commands.
#[test]
fn each_format_of_scorecard_escapes_the_tests_of_a_bundle() {
    let inputs = Inputs::new();
    for format in ["text", "json", "xunit"] {
        let output = run(&inputs, &["scorecard", "bundles/scorecard", "-o", format]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{format}: {}", text.escape_debug());
        assert!(text.contains("\\u009b31m\\u0085"), "{format}: {}", text.escape_debug());
        // In JSON a line end is an escape, so no line begins with the command.
        let command = if format == "json" {
            "\\n::error::forged"
        } else {
            "\\u003a:error::forged"
        };
        assert!(text.contains(command), "{format}: {}", text.escape_debug());
        if format == "json" {
            let list: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(list["items"][0]["spec"]["image"], HOSTILE);
        }
    }
}

/// A new command belongs into the list above.
#[test]
fn every_command_is_run_over_hostile_input() {
    fn leaves(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
        let below: Vec<_> = command
            .get_subcommands()
            .filter(|one| one.get_name() != "help")
            .collect();
        if below.is_empty() {
            found.insert(path.trim_start().to_owned());
        }
        for one in below {
            leaves(one, &format!("{path} {}", one.get_name()), found);
        }
    }
    let mut all = BTreeSet::new();
    let mut root = olmkit_cli::Cli::command();
    root.build();
    leaves(&root, "", &mut all);
    let run: Vec<String> = commands()
        .into_iter()
        .map(|(_, arguments)| arguments.join(" "))
        .collect();
    let missing: Vec<_> = all
        .iter()
        .filter(|leaf| !run.iter().any(|command| command.starts_with(leaf.as_str())))
        .collect();
    assert!(all.len() > 30, "{all:?}");
    assert!(missing.is_empty(), "{missing:?}");
}

/// A new format too.
#[test]
fn every_output_format_is_run_over_hostile_input() {
    fn formats(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        for one in command.get_subcommands() {
            formats(one, &format!("{path}{} ", one.get_name()), found);
        }
        let outputs = command
            .get_arguments()
            .filter(|argument| argument.get_short() == Some('o'));
        for output in outputs {
            let default: Vec<_> = output
                .get_default_values()
                .iter()
                .filter_map(|value| value.to_str())
                .collect();
            let values = output.get_possible_values();
            let names = values.iter().map(clap::builder::PossibleValue::get_name);
            let others = names.filter(|name| !default.contains(name));
            found.extend(others.map(|name| (path.to_owned(), name.to_owned())));
        }
    }
    let mut all = Vec::new();
    let mut root = olmkit_cli::Cli::command();
    root.build();
    formats(&root, "", &mut all);
    let run: Vec<String> = commands()
        .into_iter()
        .map(|(_, arguments)| format!("{} ", arguments.join(" ")))
        .collect();
    let is_run = |path: &str, format: &str| {
        let flag = format!("-o {format} ");
        run.iter()
            .any(|command| command.starts_with(path) && command.contains(&flag))
    };
    let missing: Vec<_> = all.iter().filter(|(path, format)| !is_run(path, format)).collect();
    assert!(all.len() > 40, "{all:?}");
    assert!(missing.is_empty(), "{missing:?}");
}

/// A python3 program that runs another on a terminal, and prints its screen.
pub const TERMINAL: &str = r#"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execv(sys.argv[1], sys.argv[1:])
shown = b""
while True:
    try:
        read = os.read(terminal, 65536)
    except OSError:
        break
    if not read:
        break
    shown += read
os.waitpid(child, 0)
sys.stdout.buffer.write(shown)
"#;

/// On a terminal our own colours appear, and nothing else.
#[test]
fn on_a_terminal_only_our_own_colours_are_shown() {
    let inputs = Inputs::new();
    for arguments in [
        &["bundle", "validate", "bundles/names"][..],
        &["catalog", "render", "catalog"],
        &["catalog", "render", "catalog", "-o", "yaml"],
        &["catalog", "list", "bundles", "catalog"],
        &["image", "inspect", "oci:layout"],
    ] {
        let output = std::process::Command::new("python3")
            .args(["-c", TERMINAL])
            .arg(assert_cmd::cargo::cargo_bin("olmkit"))
            .args(arguments)
            .current_dir(inputs.path(""))
            .env("HOME", inputs.path("home"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            !text.trim().is_empty(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut rest = text.replace("\r\n", "\n");
        // Colours: ESC [ numbers m.
        while let Some(start) = rest.find("\u{1b}[") {
            let after = &rest[start + 2..];
            let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap();
            assert_eq!(
                &after[end..=end],
                "m",
                "{arguments:?}: {}",
                after[..end + 1].escape_debug()
            );
            rest.replace_range(start..start + 2 + end + 1, "");
        }
        let bad = rest.find(|c: char| UntrustedText::is_unsafe(c) && !matches!(c, '\n' | '\t'));
        assert!(
            bad.is_none(),
            "{arguments:?}: {}",
            rest[bad.unwrap()..].chars().take(40).collect::<String>().escape_debug()
        );
    }
}
