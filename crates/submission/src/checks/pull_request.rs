//! Steps of the pipeline on the bundle and the catalogs of a pull request. They read much, and so run for one bundle or change only.

use std::borrow::Cow;
use std::collections::BTreeSet;

use olmkit::bundle::load::Entry;
use olmkit::catalog::Catalog;
use olmkit::catalog::load::text;
use olmkit::catalog::validate::catalog_verdict;
use olmkit::diagnostics::{Finding, Rule, Severity};
use olmkit_yaml::Position;

use super::{BundleContext, Check, Context, Findings, Place, Run, Suite, at, rule};
use crate::images::{list, of_csv};
use crate::python::{EMPTY, Raise, bytes};
use crate::yamllint::lint;

pub(super) static CHECKS: &[Check] = &[
    Check::new(Suite::Common, &CATALOG_FORMAT, Run::Catalogs(catalog_format)).of_pull_request(),
    Check::new(Suite::Isv, &PINNING, Run::Bundle(pinning)).of_pull_request(),
    Check::new(Suite::Common, &YAML_LINT, Run::Bundle(yaml_lint)).of_pull_request(),
];

static YAML_LINT: Rule = rule(
    "pipeline/yaml-lint",
    Severity::Error,
    "step",
    "yamllint must report no error in a new bundle's files",
)
.because(
    "The pipeline runs it with its default rules. Long lines and lists at the column of their key are allowed. Warnings are omitted.",
    "0.1.0",
)
.example("metadata:\n   name: hello   ", "metadata:\n  name: hello");

static PINNING: Rule = rule(
    "pipeline/digest-pinning",
    Severity::Error,
    "step",
    "A certified bundle must reference all images by digest and list them in spec.relatedImages",
)
.because(
    "The pipeline pins them itself and stops if that changes anything, or if fewer images are listed than named.",
    "0.1.0",
)
.example(
    "image: quay.io/example/hello:v0.0.1",
    "image: quay.io/example/hello@sha256:…",
);

static CATALOG_FORMAT: Rule = rule(
    "pipeline/validate-catalog-format",
    Severity::Error,
    "step",
    "opm validate must accept the operator's part of a catalog",
)
.because("A catalog that opm rejects is not served.", "0.1.0")
.example(
    "schema: olm.channel\npackage: hello\nname: stable\nentries: []",
    "schema: olm.channel\npackage: hello\nname: stable\nentries:\n- name: hello.v0.0.1",
);

/// Problems that are reported of a bundle.
const MOST_PROBLEMS: usize = 1000;

fn yaml_lint(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let root = context.bundle.root();
    for (path, entry) in context.reading()?.bundle.tree.walk("") {
        let Entry::File(bytes) = entry else { continue };
        if !path.ends_with(".yaml") && !path.ends_with(".yml") {
            continue;
        }
        let file = format!("{root}/{path}");
        for problem in lint(&String::from_utf8_lossy(bytes), MOST_PROBLEMS + 1) {
            if found.len() == MOST_PROBLEMS {
                let message = format!("more than {MOST_PROBLEMS} problems; the others are omitted");
                found.push(Finding::from_rule(&YAML_LINT, message).file(file).at(problem.at));
                return Ok(());
            }
            let message = format!("{} ({})", problem.message, problem.rule);
            found.push(Finding::from_rule(&YAML_LINT, message).file(&file).at(problem.at));
        }
    }
    Ok(())
}

fn pinning(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let csv = context.csv()?;
    let mut seen = BTreeSet::new();
    for named in of_csv(csv)? {
        if seen.insert(named.image.clone()) && !named.is_pinned() {
            let message = format!("{} ({}) has no digest", named.image, named.place);
            let finding = Finding::from_rule(&PINNING, message).file(csv.file).at(named.at);
            found.push(
                finding
                    .hint("reference it by digest: IMAGE@sha256:…; `olmkit image digest` looks it up in the registry"),
            );
        }
    }
    let spec = csv.get_or("spec", &EMPTY)?;
    let related = list(csv, &["spec"], "relatedImages")?.len();
    if related < seen.len() {
        let message = if related == 0 {
            format!(
                "spec.relatedImages is missing; the ClusterServiceVersion names {} images",
                seen.len()
            )
        } else {
            format!(
                "spec.relatedImages lists {related} of the {} images that the ClusterServiceVersion names",
                seen.len()
            )
        };
        found.push(at(Finding::from_rule(&PINNING, message), spec).hint("list every image with its digest"));
    }
    Ok(())
}

fn catalog_format(context: &Context<'_>, catalogs: &[Place], found: &mut Findings) -> Result<(), Raise> {
    let files = context.repository.files();
    for (catalog, operator) in catalogs {
        let Some(file) = context.repository.operator_catalog_file(catalog, operator) else {
            continue;
        };
        let problem = |message: String| Finding::from_rule(&CATALOG_FORMAT, message).file(&file);
        let bytes = bytes(files, &file)?;
        let blobs = match text(&String::from_utf8_lossy(&bytes)) {
            Ok(blobs) => blobs,
            Err(error) => {
                found.push(problem(format!("opm cannot read the catalog: {error}")));
                continue;
            }
        };
        let catalog: Catalog = blobs.into_iter().collect();
        for wrong in catalog_verdict(&catalog).problems {
            if wrong.severity != Severity::Error {
                continue;
            }
            let mut finding = problem(wrong.message);
            let line = u32::try_from(wrong.origin.line).unwrap_or(u32::MAX);
            finding.position = (line > 0).then_some(Position { line, column: 1 });
            if !wrong.object.is_empty() {
                finding = finding.object(wrong.object);
            }
            finding.hint = wrong.hint.map(Cow::into_owned);
            found.push(finding);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::checks::fixture::{CSV, Edit, checks, found_with};
    use crate::{Memory, Options, Repository, check_catalogs};

    fn errors(suite: Suite, edits: &[Edit<'_>]) -> Vec<&'static str> {
        let options = Options {
            suites: vec![suite],
            pull_request: true,
            ..Options::default()
        };
        let mut names = checks(&found_with(&options, edits), Severity::Error);
        names.retain(|name| CHECKS.iter().any(|check| check.name() == *name));
        names
    }

    #[test]
    fn a_bundle_is_linted_and_its_images_are_pinned() {
        assert_eq!(errors(Suite::Common, &[]), [""; 0]);
        assert_eq!(errors(Suite::Isv, &[]), [""; 0]);
        assert_eq!(
            errors(Suite::Common, &[(CSV, "maturity: alpha", "maturity:  alpha ")]),
            ["yaml-lint"]
        );
        let digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n                env";
        assert_eq!(
            errors(Suite::Isv, &[(CSV, digest, ":v1\n                env")]),
            ["digest-pinning"]
        );
        assert_eq!(
            errors(Suite::Isv, &[(CSV, "  relatedImages:", "  other:")]),
            ["digest-pinning"]
        );
    }

    #[test]
    fn the_problems_of_a_bundle_are_bounded() {
        let blanks = format!("a: 1\n{}", "b: 1 \n".repeat(2_000));
        let found = found_with(
            &Options {
                suites: vec![Suite::Common],
                pull_request: true,
                ..Options::default()
            },
            &[(
                CSV,
                "maturity: alpha",
                &format!("maturity: alpha\n{}", "#  \n".repeat(2_000)),
            )],
        );
        assert!(lint(&blanks, 10).len() <= 10);
        let of_lint: Vec<_> = found.iter().filter(|one| one.check == "yaml-lint").collect();
        assert_eq!(of_lint.len(), 1001);
        let last = of_lint.last().expect("many");
        assert!(last.finding.message.contains("the others are omitted"), "{last:?}");
    }

    #[test]
    fn a_catalog_that_opm_refuses_is_found() {
        let good = "---\nschema: olm.package\nname: hello\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: hello\nname: \
                    stable\nentries:\n- name: hello.v0.0.1\n---\nschema: olm.bundle\nname: hello.v0.0.1\npackage: hello\nimage: \
                    quay.io/example/hello:v1\nproperties:\n- type: olm.package\n  value: {packageName: hello, version: 0.0.1}\n";
        let bad = good.replace("defaultChannel: stable", "defaultChannel: beta");
        let broken = format!("{good}---\nschema: [\n");
        for (text, wanted) in [(good, 0), (bad.as_str(), 1), (broken.as_str(), 1)] {
            let files: Memory = [("catalogs/v4.20/hello/catalog.yaml", text)].into_iter().collect();
            let options = Options {
                suites: vec![Suite::Common],
                pull_request: true,
                skip: vec!["check_olm_bundle_object_in_fbc".to_owned()],
                ..Options::default()
            };
            let catalogs = ["v4.20/hello".to_owned()];
            let found = check_catalogs(&Repository::new(Arc::new(files)), &catalogs, &options);
            assert_eq!(found.len(), wanted, "{text}: {found:#?}");
            assert!(found.iter().all(|one| one.check == "validate-catalog-format"));
        }
    }
}
