//! Validates bundles: the rules of operator-sdk with its results and messages, and lints.
//!
//! One file contains one family of rules. A rule checks a loaded [`Bundle`] and returns [`Checked`] findings. Each
//! finding records whether operator-sdk has it and its message.

pub mod against;
pub(crate) mod bundle;
mod cel;
pub mod checked;
pub(crate) mod community;
pub mod context;
pub mod crd_safety;
pub(crate) mod crds;
pub(crate) mod csv;
mod csv_view;
pub(crate) mod dependencies;
pub(crate) mod examples;
pub mod external;
pub(crate) mod format;
pub(crate) mod good_practices;
pub(crate) mod hub;
pub(crate) mod lints;
pub(crate) mod multiarch;
mod object_meta;
pub(crate) mod objects;
pub mod olm_v1;
pub mod optional;
mod options;
pub(crate) mod removed_apis;
mod repeated;
pub mod selector;
pub mod source;
pub(crate) mod standard;

use std::collections::HashSet;

pub use against::Against;
pub use checked::Checked;
use context::Context;
pub(crate) use context::Csv;
pub use options::{Options, Profile};
pub use selector::Selector;
pub use standard::CATEGORIES_FILE;
pub(crate) use standard::{CAPABILITIES, CATEGORIES};

use crate::bundle::load::{self, Reading};
use crate::bundle::{Bundle, MediaType};
use crate::diagnostics::{Finding, Severity};
use crate::limits;

/// The result of validating one bundle.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Why operator-sdk stops without a result.
    pub fatal: Option<String>,
    /// The findings in operator-sdk's order.
    pub checked: Vec<Checked>,
}

/// One line of operator-sdk's result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Output {
    /// `error` or `warning`.
    #[serde(rename = "type")]
    pub level: &'static str,
    /// The message.
    pub message: String,
}

impl Outcome {
    /// True when operator-sdk would pass the bundle.
    pub fn passed(&self) -> bool {
        self.fatal.is_none() && !self.outputs().iter().any(|output| output.level == "error")
    }

    /// operator-sdk's output.
    pub fn outputs(&self) -> Vec<Output> {
        let output = |checked: &Checked| {
            let message = limits::message(checked.reference.as_deref()?);
            let level = if checked.finding.severity == Severity::Error {
                "error"
            } else {
                "warning"
            };
            Some(Output { level, message })
        };
        self.checked.iter().filter_map(output).collect()
    }

    /// All findings. Validators of operator-sdk repeat each other, so a finding with the message and position of an
    /// earlier one is dropped.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        let mut seen = HashSet::new();
        let all = self.checked.iter().map(|checked| &checked.finding);
        all.filter(move |finding| {
            let place = (&finding.object, &finding.path, &finding.file, finding.position);
            seen.insert((&finding.message, finding.severity, place))
        })
    }
}

/// Validates a decoded bundle.
pub fn validate(reading: &Reading, options: &Options) -> Outcome {
    if let Some(release) = options.olm_v1 {
        return of_olm_v1(reading, release, options);
    }
    let mut outcome = loaded(reading);
    let context = Context::new(&reading.bundle, options);
    if outcome.fatal.is_none()
        && default_rules(&context, &mut outcome)
        && optional_rules(&context, &options.selector, &mut outcome)
    {
        external_validators(options, &mut outcome);
    }
    if options.lints {
        outcome.checked.extend(lints::check(&context));
        outcome.checked = repeated::remove(outcome.checked);
    }
    outcome
}

/// operator-sdk's result for each of several selections of optional validators, without lints. The unconditional rules
/// run once.
pub fn validate_selections(reading: &Reading, options: &Options, selectors: &[Selector]) -> Vec<Outcome> {
    let context = Context::new(&reading.bundle, options);
    let mut always = loaded(reading);
    let is_sound = always.fatal.is_none() && default_rules(&context, &mut always);
    let of = |selector: &Selector| {
        let mut outcome = always.clone();
        if is_sound {
            optional_rules(&context, selector, &mut outcome);
        }
        outcome
    };
    selectors.iter().map(of).collect()
}

/// Findings of reading the bundle.
fn loaded(reading: &Reading) -> Outcome {
    Outcome {
        fatal: reading.fatal.clone(),
        checked: match not_a_bundle(reading) {
            Some(checked) => vec![checked],
            None => reading.problems.iter().map(problem).collect(),
        },
    }
}

/// The result of OLM v1, and the lints that also apply to it.
fn of_olm_v1(reading: &Reading, release: crate::olmv1::Release, options: &Options) -> Outcome {
    let context = Context::new(&reading.bundle, options);
    let mut checked = olm_v1::check(&context, release);
    if options.lints && reading.fatal.is_none() {
        checked.extend(lints::check(&context).into_iter().filter(olm_v1::concerns));
        checked = repeated::remove(checked);
    }
    Outcome { fatal: None, checked }
}

/// A loader problem. operator-sdk has one message for all of them, which is not part of its result.
fn problem(found: &Finding) -> Checked {
    let mut finding = found.clone();
    // Go names the types of its program. An author needs to read first which value the field must have.
    if let (Some(path), Some(hint)) = (&found.path, &found.hint)
        && let Some(rest) = hint.strip_prefix(load::FIELD_MUST_BE)
    {
        finding.message = format!("{path} must be{rest}");
        finding.hint = Some(format!("operator-sdk reports: {}", found.message));
    }
    Checked {
        finding,
        reference: None,
        on_request: false,
    }
}

/// The one finding for a directory that contains nothing of a bundle, instead of one for every missing file.
fn not_a_bundle(reading: &Reading) -> Option<Checked> {
    let bundle = &reading.bundle;
    let is_bundle = |tree: &load::Tree| tree.is_directory("manifests") || tree.is_directory("metadata");
    let [no_metadata, _] = load::NOTHING_FOUND;
    let found_nothing = |problem: &Finding| load::NOTHING_FOUND.iter().any(|rule| rule.id == problem.rule);
    if is_bundle(&bundle.tree) || !reading.problems.iter().any(found_nothing) {
        return None;
    }
    let message = format!(
        "{} is not a bundle: it has neither `manifests/` nor `metadata/`",
        bundle.root
    );
    let below = bundle
        .tree
        .walk("")
        .find_map(|(path, _)| path.strip_suffix("/manifests").map(str::to_string));
    let holds_csv = bundle.tree.children("").any(|(_, entry)| {
        matches!(entry, load::Entry::File(bytes) if memchr::memmem::find(bytes, b"kind: ClusterServiceVersion").is_some())
    });
    let hint = match below {
        Some(path) => format!("found a bundle in {path}; pass that directory or use --recursive"),
        None if holds_csv => {
            "these are the manifests of a bundle; pass the parent directory, which also has `metadata/`".to_string()
        }
        None => "pass the directory that has both; `olmkit generate bundle` creates one".to_string(),
    };
    Some(Checked::new(no_metadata, message).hint(hint))
}

/// Findings of operator-sdk's rules for the layout of a bundle.
pub(crate) fn bundle_format(bundle: &Bundle) -> format::Format {
    format::check(bundle)
}

/// The validators that scorecard runs: those of `bundle validate` without the one for the
/// kinds of objects.
pub(crate) fn scorecard_rules(bundle: &Bundle, options: &Options) -> Vec<Checked> {
    let context = Context::new(bundle, options);
    let mut groups = vec![csv::check(&context)];
    groups.extend(crds::check(&context));
    groups.push(bundle::check(&context));
    groups.into_iter().flat_map(warnings_first).collect()
}

/// The rules that always run. False where operator-sdk crashes.
fn default_rules(context: &Context<'_>, outcome: &mut Outcome) -> bool {
    let format = format::check(context.bundle);
    if let Some(file) = &format.crash {
        outcome.fatal = Some(format!("{file} is empty: operator-sdk crashes on it"));
        let hint = "add a map to the file or remove it";
        let message = "this metadata file is empty. operator-sdk crashes on it (nil pointer dereference)";
        outcome.checked.push(
            Checked::new(&crate::validate::format::FMT_10, message)
                .in_file(file)
                .hint(hint),
        );
        return false;
    }
    outcome.checked.extend(format.into_checked(&context.bundle.root));
    if context.bundle.media_type != MediaType::Helm {
        let mut of_csv = csv::check(context);
        of_csv.extend(objects::check(context));
        let mut groups = vec![bundle::check(context), of_csv];
        groups.extend(crds::check(context));
        groups
            .into_iter()
            .for_each(|group| outcome.checked.extend(warnings_first(group)));
    }
    true
}

/// The optional validators that are selected. False where operator-sdk crashes.
fn optional_rules(context: &Context<'_>, selector: &Selector, outcome: &mut Outcome) -> bool {
    for validator in optional::selected(selector) {
        let is_hub = validator.name.starts_with("operatorhub");
        if is_hub && context.csv().is_some_and(|csv| hub::crashes(&csv)) {
            outcome.fatal = Some("spec.icon is an empty list: operator-sdk crashes on it".to_string());
            let message = "spec.icon is an empty list; operator-sdk crashes on it (index out of range)";
            let mut checked =
                Checked::new(&crate::validate::hub::HUB_13, message).hint("add an icon or remove `spec.icon`");
            if let Some(csv) = context.csv() {
                checked = checked.at(csv.object, "/spec/icon");
            }
            outcome.checked.push(checked);
            return false;
        }
        outcome.checked.extend(warnings_first(validator.run(context)));
        if validator.name == "operatorhub" {
            let detail = "The \"operatorhub\" validator is deprecated; for equivalent validation use \"operatorhub/v2\", \
                          \"standardcapabilities\" and \"standardcategories\" validators";
            let subject = checked::Subject::Value(String::new());
            let checked = Checked::shared(&crate::validate::hub::HUB_0, Severity::Warning, &subject, detail);
            let hint = "select `operatorhubv2`, `capabilities` and `categories` instead";
            outcome.checked.push(checked.hint(hint));
        }
    }
    true
}

fn external_validators(options: &Options, outcome: &mut Outcome) {
    for program in &options.external {
        match external::run(&options.launcher, program, &options.directory) {
            Ok(findings) => outcome.checked.extend(findings),
            Err(reason) => {
                let message = format!("{} failed: {reason}", program.display());
                outcome.checked.push(
                    Checked::new(&crate::validate::external::EXT_1, message)
                        .hint("an external validator must exit with 0 and print one JSON object, whatever it finds"),
                );
                outcome.fatal = Some(reason);
                return;
            }
        }
    }
}

/// In each group all warnings come before all errors.
fn warnings_first(group: Vec<Checked>) -> impl Iterator<Item = Checked> {
    let (warnings, errors): (Vec<_>, Vec<_>) = group
        .into_iter()
        .partition(|checked| checked.finding.severity != Severity::Error);
    warnings.into_iter().chain(errors)
}
