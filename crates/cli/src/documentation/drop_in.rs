//! Every command and flag of operator-sdk and opm, and where it is in olmkit.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

/// The commands of a tool that have another name here, or none: where each went.
const MOVED: &[(&str, &str, Option<&str>, &str)] = &[
    (
        "operator-sdk",
        "alpha config-3alpha-to-3",
        None,
        "projects of kubebuilder's layout 3-alpha: `operator-sdk` itself",
    ),
    (
        "operator-sdk",
        "alpha generate",
        None,
        "`olmkit update` merges newer templates into a project; for Go: `operator-sdk` itself",
    ),
    (
        "operator-sdk",
        "pkgman-to-bundle",
        None,
        "package manifests are gone since OLM 0.17; `opm` 1.26 and older convert them",
    ),
    ("opm", "index export", None, "package manifests are gone since OLM 0.17"),
    (
        "opm",
        "index prune",
        None,
        "catalogs are files: delete the directories of packages, `olmkit catalog validate`, build an image",
    ),
    (
        "opm",
        "index prune-stranded",
        None,
        "catalogs are files; `olmkit catalog validate` names stranded bundles",
    ),
    (
        "opm",
        "index rm",
        None,
        "catalogs are files: delete the directory of the package, build an image",
    ),
    (
        "opm",
        "registry add",
        None,
        "SQLite catalogs are deprecated: `opm index add`, or `olmkit catalog add`",
    ),
    (
        "opm",
        "registry prune",
        None,
        "SQLite catalogs are deprecated: `olmkit catalog migrate` makes files of them",
    ),
    (
        "opm",
        "registry prune-stranded",
        None,
        "SQLite catalogs are deprecated: `olmkit catalog migrate` makes files of them",
    ),
    (
        "opm",
        "registry rm",
        None,
        "SQLite catalogs are deprecated: `olmkit catalog migrate` makes files of them",
    ),
    (
        "opm",
        "registry serve",
        None,
        "SQLite catalogs are deprecated: `olmkit catalog serve` serves files",
    ),
    (
        "opm",
        "alpha bundle build",
        Some("image build bundle"),
        "deprecated in opm",
    ),
    (
        "opm",
        "alpha bundle generate",
        Some("generate bundle"),
        "deprecated in opm",
    ),
];

/// Flags that mean nothing here, with the reason. A command that ends with a blank and a star means all.
const WITHOUT: &[(&str, &str, &str)] = &[
    ("init", "--fetch-deps", "Go modules"),
    ("init", "--repo", "Go modules"),
    ("init", "--owner", "copyright headers of Go files"),
    ("init", "--project-version", "PROJECT has version 3"),
    ("init", "--skip-go-version-check", "Go"),
    ("create api", "--make", "`make manifests` is a command of its own"),
    ("create webhook", "--make", "`make manifests` is a command of its own"),
    (
        "create webhook",
        "--external-api-domain",
        "webhooks of foreign kinds are not scaffolded",
    ),
    (
        "create webhook",
        "--external-api-path",
        "webhooks of foreign kinds are not scaffolded",
    ),
    ("create webhook", "--plural", "PROJECT has it"),
    ("create webhook", "--legacy", "webhooks of the layout before 4"),
    (
        "generate kustomize manifests",
        "--interactive",
        "descriptions are flags and files",
    ),
    ("generate kustomize manifests", "--apis-dir", "Go sources"),
];

struct Tool {
    name: &'static str,
    version: &'static str,
    commands: &'static str,
    /// The words before the same command here.
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

/// The long and short names that a command takes, hidden ones too.
fn flags(command: &Command) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for argument in command.get_arguments() {
        let long = argument
            .get_long()
            .into_iter()
            .chain(argument.get_all_aliases().unwrap_or_default());
        found.extend(long.map(|name| format!("--{name}")));
        let short = argument
            .get_short()
            .into_iter()
            .chain(argument.get_all_short_aliases().unwrap_or_default());
        found.extend(short.map(|name| format!("-{name}")));
    }
    found
}

/// The command of a path. The last word may also be a value that it takes, such as the kind of a template.
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

/// Whether the first argument of a command can be this word.
fn takes(command: &Command, word: &str) -> bool {
    let first = command.get_positionals().next();
    first.is_some_and(|argument| {
        let values = argument.get_possible_values();
        values.iter().any(|value| value.matches(word, false))
    })
}

/// What a row says of the flags: those that are not taken.
fn missing(command: &Command, path: &str, wanted: &str) -> Vec<String> {
    let taken = flags(command);
    let is_taken = |flag: &str| flag.split('/').all(|name| taken.contains(name));
    wanted
        .split_whitespace()
        .filter(|flag| !is_taken(flag))
        .map(|flag| {
            let reason = WITHOUT
                .iter()
                .find(|(command, name, _)| *command == path && flag.ends_with(name));
            match reason {
                Some((_, _, reason)) => format!("`{flag}` is not taken: {reason}"),
                None => format!("`{flag}` is not taken"),
            }
        })
        .collect()
}

#[test]
fn the_page_of_other_tools_commands_is_current() {
    let mut page = "\
# Commands of operator-sdk and opm

Every command of operator-sdk 1.42 and opm 1.73, with its flags, and what olmkit has for it. `olmkit operator-sdk …` and `olmkit opm …`, or
links to `olmkit` of these names, take the command lines of these tools. What behaves otherwise on purpose is in
[compatibility.md](compatibility.md). This page is made from the program.
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
            "\n## {} {}\n\n| command | here | flags |\n|---|---|---|",
            tool.name, tool.version
        )
        .unwrap();
        for line in tool.commands.lines() {
            let (path, wanted) = line.split_once(" |").unwrap();
            let moved = MOVED
                .iter()
                .find(|(name, command, ..)| *name == tool.name && *command == path);
            let row = match (moved, find(&root, path)) {
                (Some((_, _, Some(target), remark)), _) => format!("`olmkit {target}` | {remark}"),
                (Some((_, _, None, remark)), _) => format!("not here | {remark}"),
                (None, Some(command)) => {
                    let missing = missing(command, path, wanted);
                    unexplained.extend(
                        missing
                            .iter()
                            .filter(|text| text.ends_with("not taken"))
                            .map(|text| format!("{path}: {text}")),
                    );
                    let remark = match (missing.is_empty(), wanted.trim().is_empty()) {
                        (true, true) => "none".to_owned(),
                        (true, false) => "all".to_owned(),
                        (false, _) => missing.join("; "),
                    };
                    format!("`{} {path}` | {remark}", tool.prefix.join(" "))
                }
                (None, None) => {
                    unexplained.push(format!("{} {path}: no such command", tool.name));
                    "missing |".to_owned()
                }
            };
            writeln!(page, "| `{path}` | {row} |").unwrap();
        }
    }
    super::check("drop-in.md", &page);
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}
