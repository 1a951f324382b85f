//! Runs the checks.

use std::collections::HashMap;
use std::sync::OnceLock;

use olmkit::diagnostics::{Finding, Rule, Severity};

use crate::checked::Checked;
use crate::checks::{BundleContext, CHECKS, Check, Context, Options, Run, Suite, name_of};
use crate::python::Raise;
use crate::repository::{Operator, Repository};

/// Every rule of this crate.
pub fn rules() -> Vec<&'static Rule> {
    let mut rules: Vec<&Rule> = CHECKS.iter().copied().flatten().map(|check| check.rule).collect();
    rules.extend(crate::change_rules::RULES);
    rules.extend(crate::hub_change::RULES);
    rules.extend(crate::container::RULES);
    rules.sort_by_key(|rule| rule.id);
    rules
}

/// The names of the static checks of a suite.
pub fn static_checks(suite: Suite) -> Vec<&'static str> {
    let mut names: Vec<&str> = checks(suite).map(Check::name).collect();
    names.sort_unstable();
    names
}

/// The rule with an id, in any case, with or without the part before the slash.
pub fn find_rule(id: &str) -> Option<&'static Rule> {
    let matches = |rule: &&'static Rule| rule.id.eq_ignore_ascii_case(id) || name_of(rule.id).eq_ignore_ascii_case(id);
    rules().into_iter().find(matches)
}

/// Checks one operator without its bundles.
pub fn check_operator(repository: &Repository, operator: &Operator, options: &Options) -> Vec<Checked> {
    let context = Context { repository, options };
    run(options, |check, found| match check.run {
        Run::Operator(function) => Some(guarded(check, operator, || function(&context, operator, found))),
        _ => None,
    })
}

/// Checks one bundle of an operator. Nothing if there is no such bundle.
pub fn check_bundle(repository: &Repository, operator: &Operator, version: &str, options: &Options) -> Vec<Checked> {
    let Some(bundle) = operator.bundle(version) else {
        return Vec::new();
    };
    let csv = bundle.csv();
    let context = BundleContext {
        repository,
        options,
        operator,
        bundle,
        csv: &csv,
        reading: OnceLock::new(),
        operator_sdk: OnceLock::new(),
    };
    run(options, |check, found| match check.run {
        Run::Bundle(function) => Some(guarded(check, operator, || function(&context, found))),
        _ => None,
    })
}

/// Checks catalogs, named `CATALOG/OPERATOR`. Missing ones are skipped.
pub fn check_catalogs(repository: &Repository, catalogs: &[String], options: &Options) -> Vec<Checked> {
    let mut there: Vec<(String, String)> = catalogs
        .iter()
        .filter_map(|name| name.split_once('/'))
        .filter(|(catalog, operator)| repository.has_operator_catalog(catalog, operator))
        .map(|(catalog, operator)| (catalog.to_owned(), operator.to_owned()))
        .collect();
    there.sort();
    there.dedup();
    let context = Context { repository, options };
    run(options, |check, found| match check.run {
        Run::Catalogs(function) => Some(function(&context, &there, found)),
        _ => None,
    })
}

/// Skips checks that do not apply to operators with file-based catalogs.
fn guarded(check: &Check, operator: &Operator, function: impl FnOnce() -> Result<(), Raise>) -> Result<(), Raise> {
    if check.without_catalogs && operator.uses_catalogs()? {
        return Ok(());
    }
    function()
}

fn run(options: &Options, mut one: impl FnMut(&Check, &mut Vec<Finding>) -> Option<Result<(), Raise>>) -> Vec<Checked> {
    let mut all = Vec::new();
    for suite in &options.suites {
        let is_wanted = |check: &&Check| {
            let is_left_out =
                (check.is_step && options.strict_compat) || (check.is_of_pull_request && !options.pull_request);
            !is_left_out && !options.skip.iter().any(|name| name == check.name())
        };
        for check in checks(*suite).filter(is_wanted) {
            let mut found = Vec::new();
            let Some(result) = one(check, &mut found) else {
                continue;
            };
            let of = |finding, is_traceback| Checked {
                suite: suite.name(),
                check: check.name(),
                finding,
                is_traceback,
            };
            all.extend(found.into_iter().map(|finding| of(finding, false)));
            if let Err(raise) = result {
                all.push(of(traceback(check, raise), true));
            }
        }
    }
    if options.strict_compat { all } else { once(all) }
}

fn checks(suite: Suite) -> impl Iterator<Item = &'static Check> {
    CHECKS
        .iter()
        .copied()
        .flatten()
        .filter(move |check| check.suite == suite)
}

/// The finding that replaces the original's traceback.
fn traceback(check: &Check, raise: Raise) -> Finding {
    // An error of a check that does not count does not count either.
    let mut finding = Finding::new(check.rule, check.rule.severity, raise.text);
    if !matches!(check.suite, Suite::Preflight) {
        finding.severity = Severity::Error;
    }
    finding.file = raise.file.map(Into::into);
    finding.position = raise.position;
    finding.hint(format!("{} cannot be checked; {}", check.name(), program(check.suite)))
}

/// The original's behavior if a check cannot run.
fn program(suite: Suite) -> &'static str {
    match suite {
        Suite::Common | Suite::Community | Suite::Isv => "the hosted pipeline prints a Python traceback",
        Suite::OperatorHub => "the hosted pipeline stops",
        Suite::Preflight => "preflight counts it as an error",
    }
}

/// One input can end many checks, and two of them can report the same: it is reported once, and names the others.
fn once(all: Vec<Checked>) -> Vec<Checked> {
    let mut kept: Vec<(Checked, Vec<&'static str>)> = Vec::new();
    let mut places = HashMap::new();
    for checked in all {
        let Checked { finding, .. } = &checked;
        let position = finding.position.map(|at| (at.line, at.column));
        let same = (
            checked.is_traceback,
            finding.severity,
            position,
            finding.file.clone(),
            finding.message.clone(),
        );
        let at = *places.entry(same).or_insert(kept.len());
        match kept.get_mut(at) {
            Some((known, others)) if known.check != checked.check && !others.contains(&checked.check) => {
                others.push(checked.check);
            }
            Some(_) => {}
            None => kept.push((checked, Vec::new())),
        }
    }
    kept.into_iter()
        .map(|(checked, others)| joined(checked, &others))
        .collect()
}

fn joined(mut checked: Checked, others: &[&str]) -> Checked {
    let names = others.join(", ");
    if checked.is_traceback && !others.is_empty() {
        let hint = checked.finding.hint.take().unwrap_or_default();
        let consequence = hint.split_once("; ").map_or("", |(_, consequence)| consequence);
        checked.finding.hint = Some(format!(
            "{} and {names} cannot be checked; {consequence} for each",
            checked.check
        ));
    } else if !others.is_empty() {
        let hint = checked.finding.hint.unwrap_or_default();
        checked.finding.hint = Some(format!("{hint}; also found by {names}"));
    }
    checked
}
