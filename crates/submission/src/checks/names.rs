//! The operator's name in the ClusterServiceVersion, in the annotations and as directory.

use std::collections::BTreeSet;

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::bundle::PACKAGE;
use crate::python::Raise;
use crate::python::text::list;

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Common, &NAME, Run::Bundle(operator_name))];

static NAME: Rule = rule(
    "pipeline/check_operator_name",
    Severity::Error,
    "common",
    "Directory, annotations and ClusterServiceVersion must name the same operator, in all its bundles",
)
.because(
    "The package name is reserved for the directory. A bundle of another package would be published under another operator's name.",
    "0.1.0",
)
.example(
    "# operators/hello-operator/0.0.3/metadata/annotations.yaml\nannotations:\n  operators.operatorframework.io.bundle.package.v1: hello",
    "annotations:\n  operators.operatorframework.io.bundle.package.v1: hello-operator",
);

fn operator_name(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let bundle = context.bundle;
    let annotations = bundle.path("metadata/annotations.yaml");
    let package = match bundle.package() {
        Ok(package) => package,
        Err(raise) => {
            let message = format!("Invalid operator name in annotations.yaml for {bundle}");
            found.push(placed(Finding::from_rule(&NAME, message), &raise, &annotations));
            return Ok(());
        }
    };
    if package.is_empty() {
        let message = "Bundle does not define the operator name in annotations.yaml";
        let hint = format!("add the annotation {PACKAGE}: {}", context.operator.name);
        found.push(Finding::from_rule(&NAME, message).file(annotations).hint(hint));
        return Ok(());
    }
    let name = match bundle.name() {
        Ok(name) => name.operator.clone(),
        Err(raise) => {
            let message = format!("Invalid operator name in CSV for {bundle}");
            found.push(placed(Finding::from_rule(&NAME, message), &raise, &bundle.root()));
            return Ok(());
        }
    };
    let at_package = |finding: Finding| match bundle.annotations().and_then(|view| view.get(PACKAGE)) {
        Ok(view) => at(finding, view),
        Err(_) => finding.file(&annotations),
    };
    let at_name = |finding: Finding| match context.csv().and_then(|csv| csv.item("metadata")?.item("name")) {
        Ok(view) => {
            let finding = at(finding, view);
            let dots = view.node.as_str().is_some_and(cut_in_the_name);
            if dots && !context.options.strict_compat {
                return finding.hint(
                    "the hosted pipeline uses the part before the first dot as the operator's name: use a name without dots before the version",
                );
            }
            finding
        }
        Err(_) => finding.file(bundle.root()),
    };
    let others = || {
        context
            .operator
            .bundles
            .iter()
            .filter(|other| other.version != bundle.version)
    };
    if context.has_others() {
        let packages: BTreeSet<String> = others().filter_map(|other| other.package().ok()).collect();
        if let Some(finding) = consistency(&package, packages, "from annotations.yaml") {
            found.push(at_package(finding));
        }
        let names: BTreeSet<String> = others()
            .filter_map(|other| Some(other.name().ok()?.operator.clone()))
            .collect();
        if let Some(finding) = consistency(&name, names, "from the CSV") {
            found.push(at_name(finding));
        }
    }
    let severity = if context.has_others() {
        Severity::Warning
    } else {
        Severity::Error
    };
    if package != name {
        let message = format!(
            "Operator name from annotations.yaml ({package}) does not match the name defined in the CSV ({name})"
        );
        found.push(at_name(Finding::new(&NAME, severity, message)));
    }
    if package != context.operator.name {
        let message = format!(
            "Operator name from annotations.yaml ({package}) does not match the operator's directory name ({})",
            context.operator.name
        );
        found.push(at_package(Finding::new(&NAME, severity, message)));
    }
    Ok(())
}

/// Returns true if the pipeline cuts `my.operator.v1.0.0` inside of the operator's name.
fn cut_in_the_name(text: &str) -> bool {
    let rest = text.split_once('.').map_or("", |(_, rest)| rest);
    let is_version = |text: &str| {
        text.trim_start_matches('v')
            .starts_with(|first: char| first.is_ascii_digit())
    };
    !is_version(rest) && rest.split('.').any(is_version)
}

fn placed(finding: Finding, raise: &Raise, file: &str) -> Finding {
    let finding = finding
        .file(raise.file.as_deref().unwrap_or(file))
        .hint(raise.text.clone());
    match raise.position {
        Some(position) => finding.at(position),
        None => finding,
    }
}

/// The finding for a name that differs from those of the other bundles.
fn consistency(own: &str, mut others: BTreeSet<String>, whence: &str) -> Option<Finding> {
    if others.len() == 1 {
        let common = others.pop_first()?;
        let message =
            format!("Operator name {whence} ({own}) does not match the name defined in other bundles ({common})");
        return (common != own).then(|| Finding::from_rule(&NAME, message));
    }
    others.insert(own.to_owned());
    let message = format!(
        "Operator name {whence} is not consistent across bundles: {}",
        list(others)
    );
    Some(Finding::new(&NAME, Severity::Warning, message))
}

#[cfg(test)]
mod tests {
    use super::cut_in_the_name;

    #[test]
    fn names_with_dots_are_recognised() {
        assert!(cut_in_the_name("my.operator.v1.0.0"));
        assert!(!cut_in_the_name("operator.v1.0.0") && !cut_in_the_name("operator.1.0.0") && !cut_in_the_name("x"));
    }
}
