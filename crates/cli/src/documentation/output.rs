//! The table of formats in `docs/reference/output.md`.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory as _};

/// Adds a row for each command whose `--output` has a list of formats.
fn rows(command: &Command, table: &mut String) {
    let output = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some("output"));
    if let Some(output) = output.filter(|output| !output.is_hide_set()) {
        let values = output.get_possible_values();
        let mut names: Vec<&str> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(clap::builder::PossibleValue::get_name)
            .collect();
        if let Some(default) = output.get_default_values().first().and_then(|value| value.to_str()) {
            names.sort_by_key(|name| *name != default);
        }
        if !names.is_empty() {
            let name = command.get_bin_name().unwrap_or_default();
            let name = name.strip_prefix("olmkit ").unwrap_or(name);
            writeln!(table, "| `{name}` | `{}` |", names.join("`, `")).unwrap();
        }
    }
    super::visible(command).for_each(|sub| rows(sub, table));
}

#[test]
fn the_page_lists_the_formats_of_each_command() {
    let mut table = "\n| command | formats |\n|---|---|\n".to_owned();
    let olmkit = super::command(crate::Cli::command());
    for (_, names) in crate::groups::GROUPS {
        for name in *names {
            rows(olmkit.find_subcommand(name).unwrap(), &mut table);
        }
    }
    table.push('\n');
    assert!(table.lines().count() > 25, "{table}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/output.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (before, rest) = page.split_once("<!-- formats -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of formats -->\n").unwrap();
    super::check(
        "reference/output.md",
        &format!("{before}<!-- formats -->\n{table}<!-- end of formats -->\n{after}"),
    );
}
