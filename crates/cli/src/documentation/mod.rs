//! The pages of the documentation that are made from the command line: `docs/commands.md` and `docs/drop-in.md`.
//!
//! `UPDATE_GENERATED=1 cargo test -p olmkit-cli --lib documentation` writes them anew.

mod drop_in;
mod rules;

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory as _};

/// The command line with every part built.
fn command(mut command: Command) -> Command {
    command.build();
    command
}

/// Compares a page with what it should be, or writes it.
#[track_caller]
fn check(page: &str, wanted: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&file, wanted).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/{page} is out of date: run UPDATE_GENERATED=1 cargo test -p olmkit-cli --lib documentation"
    );
}

#[test]
fn the_reference_of_commands_is_current() {
    let mut page = "\
# Commands

The help of every command. `olmkit COMMAND --help` prints the same and the options of every command; man pages and completions come with the releases, and `olmkit completion`
prints completions. This page is made from the program.

## Exit codes

| code | meaning |
|---|---|
| 0 | done; nothing was found that fails |
| 1 | findings that fail (`--fail-on`), a difference (`diff` commands, `--check`, `--diff`), or the command could not do its work |
| 2 | wrong usage: flags, settings, or inputs that cannot be compared |
| 130, 143 | interrupted by SIGINT or SIGTERM |

Commands under the names of other programs have the codes of those: `opm`, `grpc_health_probe`, `scorecard`.

## Options of every command

| option | |
|---|---|
| `--limit NAME=VALUE` | change a limit of what is read; [limits.md](limits.md) lists them (`OLMKIT_LIMIT`) |
| `--color auto\\|always\\|never` | whether the output has colours; `auto` means on a terminal, unless `NO_COLOR` is set |
| `--verbose` | log each request to registries and clusters on standard error |
| `-q`, `--quiet` | print results, warnings and errors only: no progress and no notes |
"
    .to_owned();
    let olmkit = command(crate::Cli::command());
    describe(&olmkit, &mut page);
    // Environment variables that are set where this runs are none of the page's.
    check("commands.md", &page);
}

/// A section for each command that does something, in the order of their names.
fn describe(command: &Command, page: &mut String) {
    let mut below: Vec<&Command> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .collect();
    below.sort_by_key(|sub| sub.get_name().to_owned());
    if below.is_empty() {
        let name = command.get_bin_name().unwrap_or_default();
        let help = command
            .clone()
            .mut_args(|argument| {
                let is_global = argument.is_global_set();
                argument.hide_env_values(true).hide(is_global)
            })
            .render_long_help()
            .to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.join("\n").trim_end()).unwrap();
    }
    for sub in below {
        describe(sub, page);
    }
}
