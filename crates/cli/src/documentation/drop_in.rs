//! Every command and flag of operator-sdk and opm, and where it is in olmkit.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

/// The commands of a tool that olmkit does not have, and their replacement.
const MOVED: &[(&str, &str, &str)] = &[
    (
        "operator-sdk",
        "alpha config-3alpha-to-3",
        "converts projects with kubebuilder's layout 3-alpha: use `operator-sdk`",
    ),
    (
        "operator-sdk",
        "alpha generate",
        "`olmkit update` merges newer templates into a Rust project. For Go, use `operator-sdk`",
    ),
    (
        "operator-sdk",
        "pkgman-to-bundle",
        "OLM 0.17 removed package manifests, and `opm` up to 1.26 converts them",
    ),
    ("opm", "index export", "OLM 0.17 removed package manifests"),
    (
        "opm",
        "index prune",
        "catalogs are files: delete the packages' directories, run `olmkit catalog validate`, build an image",
    ),
    (
        "opm",
        "index prune-stranded",
        "catalogs are files: `olmkit catalog validate` names stranded bundles",
    ),
    (
        "opm",
        "index rm",
        "catalogs are files: delete the package's directory, build an image",
    ),
    (
        "opm",
        "registry add",
        "SQLite catalogs are deprecated: `opm index add`, or `olmkit catalog add`",
    ),
    (
        "opm",
        "registry prune",
        "SQLite catalogs are deprecated: `opm migrate` writes files, which all commands of `olmkit catalog` read",
    ),
    (
        "opm",
        "registry prune-stranded",
        "SQLite catalogs are deprecated: `opm migrate` writes files, which all commands of `olmkit catalog` read",
    ),
    (
        "opm",
        "registry rm",
        "SQLite catalogs are deprecated: `opm migrate` writes files, which all commands of `olmkit catalog` read",
    ),
    (
        "opm",
        "registry serve",
        "SQLite catalogs are deprecated: `opm migrate` writes files, and `olmkit catalog serve` serves them",
    ),
    (
        "opm",
        "alpha bundle build",
        "`olmkit image build bundle` builds bundle images",
    ),
    (
        "opm",
        "alpha bundle generate",
        "`olmkit generate bundle --metadata` writes annotations and Dockerfile",
    ),
];

/// Flags that olmkit does not have, with the reason.
const WITHOUT: &[(&str, &str, &str)] = &[
    ("create api", "--make", "`make manifests` is a separate command"),
    ("create webhook", "--make", "`make manifests` is a separate command"),
    (
        "create webhook",
        "--external-api-domain",
        "olmkit scaffolds no webhooks for third-party kinds",
    ),
    (
        "create webhook",
        "--external-api-path",
        "olmkit scaffolds no webhooks for third-party kinds",
    ),
    ("create webhook", "--plural", "PROJECT has it"),
    ("create webhook", "--legacy", "applies only to layouts before 4"),
];

/// The test that runs each command: the path of its file below `crates/cli/tests`, and its name.
const TESTS: &[(&str, &str, &str)] = &[
    (
        "operator-sdk",
        "bundle validate",
        "command/drop_in.rs::operator_sdk_bundle_validate",
    ),
    (
        "operator-sdk",
        "cleanup",
        "cluster/install.rs::a_bundle_directory_is_installed_upgraded_and_removed_without_residue",
    ),
    (
        "operator-sdk",
        "completion bash",
        "command/drop_in.rs::operator_sdk_completion",
    ),
    (
        "operator-sdk",
        "completion fish",
        "command/drop_in.rs::operator_sdk_completion",
    ),
    (
        "operator-sdk",
        "completion powershell",
        "command/drop_in.rs::operator_sdk_completion",
    ),
    (
        "operator-sdk",
        "completion zsh",
        "command/drop_in.rs::operator_sdk_completion",
    ),
    (
        "operator-sdk",
        "create api",
        "command/drop_in.rs::operator_sdk_create_api",
    ),
    (
        "operator-sdk",
        "create webhook",
        "command/drop_in.rs::operator_sdk_create_webhook",
    ),
    ("operator-sdk", "edit", "command/drop_in.rs::operator_sdk_edit"),
    (
        "operator-sdk",
        "generate bundle",
        "command/drop_in.rs::operator_sdk_generate_bundle",
    ),
    (
        "operator-sdk",
        "generate kustomize manifests",
        "command/drop_in.rs::operator_sdk_generate_kustomize_manifests",
    ),
    ("operator-sdk", "init", "command/drop_in.rs::operator_sdk_init"),
    (
        "operator-sdk",
        "olm install",
        "cluster/olm_release.rs::olm_is_installed_from_a_downloaded_release",
    ),
    (
        "operator-sdk",
        "olm status",
        "cluster/olm_release.rs::olm_is_installed_from_a_downloaded_release",
    ),
    (
        "operator-sdk",
        "olm uninstall",
        "cluster/olm_release.rs::olm_is_installed_from_a_downloaded_release",
    ),
    (
        "operator-sdk",
        "run bundle",
        "cluster/install.rs::a_bundle_directory_is_installed_upgraded_and_removed_without_residue",
    ),
    (
        "operator-sdk",
        "run bundle-upgrade",
        "cluster/install.rs::a_bundle_directory_is_installed_upgraded_and_removed_without_residue",
    ),
    (
        "operator-sdk",
        "scorecard",
        "command/drop_in.rs::operator_sdk_scorecard",
    ),
    ("operator-sdk", "version", "command/drop_in.rs::operator_sdk_version"),
    (
        "opm",
        "alpha bundle extract",
        "cluster/bundle_extract.rs::bundles_are_unpacked_as_upstream_does",
    ),
    (
        "opm",
        "alpha bundle unpack",
        "command/drop_in.rs::opm_alpha_bundle_unpack",
    ),
    (
        "opm",
        "alpha convert-template basic",
        "command/drop_in.rs::opm_alpha_templates",
    ),
    (
        "opm",
        "alpha convert-template substitutes",
        "command/drop_in.rs::opm_alpha_templates",
    ),
    ("opm", "alpha list bundles", "command/drop_in.rs::opm_alpha_list"),
    ("opm", "alpha list channels", "command/drop_in.rs::opm_alpha_list"),
    ("opm", "alpha list packages", "command/drop_in.rs::opm_alpha_list"),
    (
        "opm",
        "alpha render-graph",
        "command/drop_in.rs::opm_alpha_render_graph",
    ),
    (
        "opm",
        "alpha render-template",
        "command/drop_in.rs::opm_alpha_templates",
    ),
    ("opm", "completion bash", "command/drop_in.rs::opm_completion"),
    ("opm", "completion fish", "command/drop_in.rs::opm_completion"),
    ("opm", "completion powershell", "command/drop_in.rs::opm_completion"),
    ("opm", "completion zsh", "command/drop_in.rs::opm_completion"),
    (
        "opm",
        "generate dockerfile",
        "command/drop_in.rs::opm_generate_dockerfile",
    ),
    ("opm", "index add", "command/drop_in.rs::opm_index_add"),
    ("opm", "init", "command/drop_in.rs::opm_init"),
    ("opm", "migrate", "command/drop_in.rs::opm_migrate"),
    ("opm", "render", "command/drop_in.rs::opm_render"),
    ("opm", "serve", "command/drop_in.rs::opm_serve"),
    ("opm", "validate", "command/drop_in.rs::opm_validate"),
    ("opm", "version", "command/drop_in.rs::opm_version"),
];

/// The test of a command. It must exist, and contain the words of the command.
fn test_of(tool: &str, path: &str) -> &'static str {
    let (.., test) = TESTS
        .iter()
        .find(|(name, command, _)| *name == tool && *command == path)
        .unwrap_or_else(|| panic!("no test runs {tool} {path}"));
    let (file, function) = test.split_once("::").unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let source = std::fs::read_to_string(&source).unwrap_or_else(|error| panic!("{file}: {error}"));
    let body = source.split_once(&format!("fn {function}("));
    let (_, body) = body.unwrap_or_else(|| panic!("{test} does not exist"));
    let body = body.split("\n}\n").next().unwrap_or_default();
    // As arguments of the program, or in the name of a helper: `run_bundle`.
    let words: Vec<&str> = body.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    for word in path.split([' ', '-']) {
        assert!(words.contains(&word), "{test} does not run {tool} {path}: no {word:?}");
    }
    test
}

struct Tool {
    name: &'static str,
    version: &'static str,
    commands: &'static str,
    /// The words before the same command in olmkit.
    prefix: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "operator-sdk",
        version: "1.42",
        commands: include_str!("operator-sdk-1.42.txt"),
        prefix: &["olmkit"],
    },
    Tool {
        name: "opm",
        version: "1.73",
        commands: include_str!("opm-1.73.txt"),
        prefix: &["olmkit", "opm"],
    },
];

/// The argument of a command with a long or short name, hidden ones too.
fn argument<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| {
        if let Some(long) = name.strip_prefix("--") {
            argument.get_long() == Some(long)
                || argument
                    .get_all_aliases()
                    .is_some_and(|aliases| aliases.contains(&long))
        } else {
            let short = name.trim_start_matches('-').chars().next().unwrap();
            argument.get_short() == Some(short)
                || argument
                    .get_all_short_aliases()
                    .is_some_and(|aliases| aliases.contains(&short))
        }
    })
}

/// The command of a path. The last word may also be an accepted value, such as the kind of a template.
fn find<'c>(command: &'c Command, path: &str) -> Option<&'c Command> {
    let mut command = command;
    let mut names = path.split_whitespace().peekable();
    while let Some(name) = names.next() {
        command = match command.find_subcommand(name) {
            Some(below) => below,
            None if names.peek().is_none() && takes(command, name) => return Some(command),
            None => return None,
        };
    }
    Some(command)
}

/// Returns true if the first argument of a command can be this word.
fn takes(command: &Command, word: &str) -> bool {
    let first = command.get_positionals().next();
    first.is_some_and(|argument| {
        let values = argument.get_possible_values();
        values.iter().any(|value| value.matches(word, false))
    })
}

/// The flags of a command that olmkit does not have or that have no effect.
fn exceptions(command: &Command, path: &str, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for flag in wanted.split_whitespace() {
        let arguments: Vec<Option<&Arg>> = flag.split('/').map(|name| argument(command, name)).collect();
        let reason = WITHOUT
            .iter()
            .find(|(command, name, _)| *command == path && flag.ends_with(name))
            .map_or(String::new(), |(.., reason)| format!(" ({reason})"));
        let Some(Some(known)) = arguments.first().filter(|_| arguments.iter().all(Option::is_some)) else {
            found.push(format!("`{flag}` is not supported{reason}"));
            continue;
        };
        // The help of a hidden flag is the only place with the reason.
        let help = known.get_help().map(ToString::to_string).unwrap_or_default();
        let why = help
            .split_once(": ")
            .or_else(|| help.split_once("; "))
            .map_or(String::new(), |(_, why)| format!(" ({})", why.trim_end_matches('.')));
        if help.starts_with("Not supported") {
            found.push(format!("`{flag}` is not supported{why}"));
        } else if help.starts_with("Ignored (") {
            found.push(format!("`{flag}` has no effect{why}"));
        }
    }
    found
}

#[test]
fn the_page_of_other_tools_commands_is_current() {
    let mut page = "\
# Commands of operator-sdk and opm

If you call operator-sdk 1.42 or opm 1.73, olmkit can replace it: this page lists each of their commands with its counterpart. If a result differs
on purpose, [Compatibility](compatibility.md) lists it. The last column names the test below `crates/cli/tests` that runs the command. This page is
generated.

## Use in Makefiles

Your Makefile calls operator-sdk and opm through variables. Some Makefiles download another release if `version` does not print the expected one.
To use olmkit, link to it under the tools' names, so that it prints `version` as they do. Then pass the releases that olmkit is compatible with:

<!-- tested by: dev/makefiles.sh -->
```sh
mkdir -p bin && cp \"$(command -v olmkit)\" bin/olmkit
ln -sf olmkit bin/operator-sdk && ln -sf olmkit bin/opm
make bundle catalog-build OPERATOR_SDK=$PWD/bin/operator-sdk OPM=$PWD/bin/opm \\
    OPERATOR_SDK_VERSION=v1.42.3 OPM_VERSION=v1.73.0
```

Link to a copy. If your Makefile downloads a tool, it writes through the link and would replace the installed olmkit. If your Makefile has
versions without `v`, write `OPERATOR_SDK_VERSION=1.42.3`. You can also call `olmkit operator-sdk COMMAND` and `olmkit opm COMMAND`. `OPM=olmkit`
works for every opm command except `version` and `completion`.

Flags follow pflag: if you repeat a flag, the last value applies, and lists append. Boolean flags accept `--flag=false`. A subcommand's flags may
precede its name. Commands of operator-sdk other than `init` and `create api` accept `--plugins` without effect.
"
    .to_owned();
    let mut unexplained = Vec::new();
    for tool in TOOLS {
        let root = super::command(match tool.name {
            "opm" => crate::opm::Opm::command(),
            _ => crate::Cli::command(),
        });
        writeln!(
            page,
            "\n## {} {}\n\n| command | olmkit | flags | run by |\n|---|---|---|---|",
            tool.name, tool.version
        )
        .unwrap();
        for line in tool.commands.lines() {
            let (path, wanted) = line.split_once(" |").unwrap();
            let moved = MOVED
                .iter()
                .find(|(name, command, ..)| *name == tool.name && *command == path);
            let row = match (moved, find(&root, path)) {
                (Some((.., remark)), _) => format!("not supported | {remark} |"),
                (None, Some(command)) => {
                    let exceptions = exceptions(command, path, wanted);
                    unexplained.extend(
                        exceptions
                            .iter()
                            .filter(|text| text.ends_with("is not supported"))
                            .map(|text| format!("{path}: {text}")),
                    );
                    let remark = match (exceptions.is_empty(), wanted.trim().is_empty()) {
                        (true, true) => "none".to_owned(),
                        (true, false) => "all".to_owned(),
                        (false, _) => exceptions.join(", "),
                    };
                    let test = test_of(tool.name, path);
                    // `olmkit version` has its own format, and `olmkit completion` completes olmkit.
                    let prefix = match path.split(' ').next() {
                        Some("version" | "completion") => format!("olmkit {}", tool.name),
                        _ => tool.prefix.join(" "),
                    };
                    format!("`{prefix} {path}` | {remark} | `{test}`")
                }
                (None, None) => {
                    unexplained.push(format!("{} {path}: no such command", tool.name));
                    "missing | |".to_owned()
                }
            };
            writeln!(page, "| `{path}` | {row} |").unwrap();
        }
    }
    super::check("reference/drop-in.md", &page);
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}
