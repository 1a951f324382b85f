//! The commands by purpose, as the help of `olmkit` lists them.

use std::fmt::Write as _;

use clap::builder::Styles;
use clap::{Command, Subcommand as _};

/// Titles, and the commands below them. A test checks that each visible command occurs once.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "Create an operator",
        &["init", "create", "edit", "delete", "update", "adopt"],
    ),
    ("Package it", &["generate", "bundle", "scorecard", "crd", "explain"]),
    ("Catalogs and images", &["catalog", "image"]),
    (
        "Cluster",
        &["olm", "run", "subscribe", "diagnose", "cleanup", "extension", "migrate"],
    ),
    ("Publish", &["repo"]),
    ("Settings", &["config", "completion", "version"]),
];

/// The template of the help of `olmkit`. clap lists all commands below one title.
pub fn help_template() -> String {
    let commands = super::Command::augment_subcommands(Command::new("olmkit"));
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = write!(template, "\n{header}{title}:{header:#}\n");
        for name in *names {
            let about = commands.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(template, "  {literal}{name:<11}{literal:#} {about}");
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    template
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::GROUPS;

    #[test]
    fn each_visible_command_is_in_one_group() {
        let mut olmkit = crate::Cli::command();
        olmkit.build();
        let visible = olmkit
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && command.get_name() != "help");
        let visible: BTreeSet<&str> = visible.map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), visible);
        assert_eq!(grouped.len(), visible.len(), "a command is in two groups");
    }

    #[test]
    fn the_help_of_olmkit() {
        insta::assert_snapshot!(crate::Cli::command().term_width(100).render_help());
    }
}
