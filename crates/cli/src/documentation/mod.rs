//! The generated pages of the command line: `docs/reference/commands/` and `docs/reference/drop-in.md`.
//!
//! `UPDATE_GENERATED=1 cargo test -p olmkit-cli --lib documentation` rewrites them.

mod drop_in;
mod flags;
mod output;
mod rules;

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory as _};

/// The command line with every part built.
fn command(mut command: Command) -> Command {
    command.build();
    command
}

/// Compares a page with its expected content, or writes it.
#[track_caller]
fn check(page: &str, wanted: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
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
    let mut index = "\
# Commands

These pages show the help of every command. `olmkit COMMAND --help` prints the same text plus the options of every command. Releases contain
man pages and completions, and `olmkit completion` prints completions. The pages are generated from the program.

"
    .to_owned();
    let olmkit = command(crate::Cli::command());
    for (title, names) in crate::groups::GROUPS {
        let file = title.to_lowercase().replace(' ', "-") + ".md";
        let mut page = format!("# {title}\n");
        let mut linked = Vec::new();
        for name in *names {
            describe(olmkit.find_subcommand(name).unwrap(), &mut page);
            linked.push(format!("`{name}`"));
        }
        writeln!(index, "- [{title}]({file}): {}", linked.join(", ")).unwrap();
        check(&format!("reference/commands/{file}"), &page);
    }
    index.push_str(
        "
## Exit codes

| code | meaning |
|---|---|
| 0 | success, and no finding makes the command fail |
| 1 | findings that fail (`--fail-on`), a difference (`diff` commands, `--check`, `--diff`), or the command failed |
| 2 | usage error: flags, settings, or inputs that cannot be compared |
| 130, 143 | interrupted by SIGINT or SIGTERM |

`grpc_health_probe` and `scorecard` use the same exit codes as the tools that they replace, and so does `olmkit opm`, except for usage errors.

## Options for every command

| option | meaning |
|---|---|
| `--limit NAME=VALUE` | change an input limit, see [Limits](../limits.md) (`OLMKIT_LIMIT`) |
| `--color auto\\|always\\|never` | colorize the output. `auto` means on a terminal, unless `NO_COLOR` is set |
| `--verbose` | log each request to registries and clusters on standard error |
| `-q`, `--quiet` | print only results, warnings and errors |
",
    );
    check("reference/commands/README.md", &index);
}

/// The subcommands that users see.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

/// A section for each command that does something, in the order of their names.
fn describe(command: &Command, page: &mut String) {
    let mut below: Vec<&Command> = visible(command).collect();
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
