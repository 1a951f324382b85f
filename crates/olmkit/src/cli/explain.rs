//! `olmkit explain`

use std::io::Write as _;
use std::process::ExitCode;

use olmkit::validate::rules::{self, Origin};

/// Tell what a rule of `bundle validate` asks for.
#[derive(clap::Args)]
pub struct Args {
    /// Id of the rule, such as CSV-17; without it all rules are listed
    rule: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = &mut std::io::stdout().lock();
    let Some(id) = &args.rule else {
        for rule in rules::all() {
            writeln!(out, "{:<12} {:<8} {}", rule.id, rule.severity, rule.summary)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(rule) = rules::find(id) else {
        eprintln!("Error: no rule {id:?}; `olmkit explain` lists all");
        return Ok(ExitCode::from(2));
    };
    let origin = match rule.origin {
        Origin::Reference => "operator-sdk has this rule; it decides the verdict",
        Origin::Optional => "a rule of an optional validator of operator-sdk (see `bundle validate --list-optional`)",
        Origin::Own => "a rule of olmkit's own; it never changes operator-sdk's verdict",
    };
    writeln!(out, "{} ({})\n{}\n\n{origin}", rule.id, rule.severity, rule.summary)?;
    for (title, text) in [("Bad", rule.bad), ("Good", rule.good)]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
    {
        writeln!(out, "\n{title}:\n")?;
        for line in text.lines() {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
