//! `olmkit explain`

use std::io::Write as _;
use std::process::ExitCode;

use olmkit::diagnostics::{Family, Rule};
use olmkit::rules::{self, Origin};

// Show the documentation of a validation rule.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit explain", "olmkit explain CSV-17"])]
pub struct Args {
    /// ID of the rule, such as CSV-17 [default: list all rules]
    rule: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let out = &mut super::terminal::output();
    let Some(id) = &args.rule else {
        for rule in rules::all().iter().copied().chain(olmkit_submission::rules()) {
            writeln!(out, "{:<12} {:<8} {}", rule.id, rule.severity, rule.summary)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(rule) = rules::find(id).or_else(|| olmkit_submission::find_rule(id)) else {
        eprintln!("error: no rule {id:?}; `olmkit explain` lists all");
        return Ok(ExitCode::from(2));
    };
    writeln!(
        out,
        "{} ({})\n{}\n\n{}\n\n{}\nfix available: {}\nsince olmkit {}\n{}",
        rule.id,
        rule.severity,
        rule.summary,
        rule.why,
        standing(rule),
        olmkit::fix::flags(rule.id).unwrap_or("no"),
        rule.since,
        rule.page()
    )?;
    if let Some(proof) = &rule.proof {
        writeln!(
            out,
            "\nverified by {} ({}): {}",
            proof.by.name(),
            proof.version,
            proof.effect
        )?;
    } else if !rule.is_default() {
        writeln!(out, "\nnot verified: this rule runs with `--rules all` only")?;
    }
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

/// The effect of a rule and of the others of its family.
pub fn standing(rule: &Rule) -> &'static str {
    match rule.origin {
        Origin::OperatorSdk(_) => "operator-sdk rule, decides the result",
        Origin::OptionalValidator(_) => "rule in an optional validator (see `bundle validate --list-optional`)",
        Origin::Scorecard(_) => "scorecard rule, decides the state of its test",
        Origin::Opm => "opm rule, decides the result",
        Origin::Pipeline("operatorhub") => {
            "operatorhub.io rule, decides the result of `repo check --suite operatorhub`"
        }
        Origin::Pipeline("preflight") => "preflight rule, decides the result of `repo check --suite preflight`",
        Origin::Pipeline(_) => "hosted pipeline rule, decides the result of `repo check`",
        _ => match rule.family() {
            Family::CatalogLints => "olmkit lint, never changes the result unless you pass `--fail-on warning`",
            Family::OlmV1 => "olmkit lint, decides the result only with `--profile olmv1`",
            _ => {
                "olmkit lint, never changes the result unless you pass `--strict` or `--fail-on warning` (except OPM-1, which is an error)"
            }
        },
    }
}
