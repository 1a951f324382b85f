//! A repository with one valid operator, and the findings after a change to its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use olmkit::diagnostics::Severity;

use crate::{Checked, Memory, Options, Repository, Suite, check_bundle, check_operator};

pub(super) const CSV: &str = "operators/hello/0.0.1/manifests/hello.clusterserviceversion.yaml";
pub(super) const ANNOTATIONS: &str = "operators/hello/0.0.1/metadata/annotations.yaml";
pub(super) const CI: &str = "operators/hello/ci.yaml";

/// The files of the sound operator.
fn files() -> BTreeMap<String, String> {
    let csv = include_str!("fixture.yaml");
    let annotations = "annotations:\n  \
                       operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
                       operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
                       operators.operatorframework.io.bundle.metadata.v1: metadata/\n  \
                       operators.operatorframework.io.bundle.package.v1: hello\n  \
                       operators.operatorframework.io.bundle.channels.v1: stable\n  \
                       operators.operatorframework.io.bundle.channel.default.v1: stable\n  \
                       com.redhat.openshift.versions: v4.20\n";
    let ci = "updateGraph: replaces-mode\nreviewers:\n- octocat\n";
    [(CSV, csv), (ANNOTATIONS, annotations), (CI, ci)]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into()
}

/// One change: the file, a string in it and its replacement. An empty string means the whole file.
pub(super) type Edit<'a> = (&'a str, &'a str, &'a str);

/// All findings of a suite after changes.
pub(super) fn found(suite: Suite, edits: &[Edit<'_>]) -> Vec<Checked> {
    let options = Options {
        suites: vec![suite],
        ..Options::default()
    };
    found_with(&options, edits)
}

/// All findings with options after changes.
pub(super) fn found_with(options: &Options, edits: &[Edit<'_>]) -> Vec<Checked> {
    let mut files = files();
    for (path, from, to) in edits {
        let text = files.entry((*path).to_owned()).or_default();
        assert!(text.contains(from), "{path} has no {from:?}");
        *text = if from.is_empty() {
            (*to).to_owned()
        } else {
            text.replace(from, to)
        };
    }
    let repository = Repository::new(Arc::new(files.into_iter().collect::<Memory>()));
    let operator = repository.operator("hello").expect("it is there");
    let mut found = check_operator(&repository, &operator, options);
    for version in operator.versions() {
        found.extend(check_bundle(&repository, &operator, &version, options));
    }
    found
}

/// The checks that have findings of a severity, each once, sorted.
pub(super) fn checks(found: &[Checked], severity: Severity) -> Vec<&'static str> {
    let of_severity = found.iter().filter(|checked| checked.finding.severity == severity);
    let mut names: Vec<&str> = of_severity.map(|checked| checked.check).collect();
    names.sort_unstable();
    names.dedup();
    names
}
