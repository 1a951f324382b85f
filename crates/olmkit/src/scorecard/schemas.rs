//! `olm-crds-have-validation`

use olmkit_scorecard::State;
use serde_json::Value;

use super::csv::Csv;
use super::examples::{self, Crash, Example};
use super::rules::{Answer, SC_4};
use crate::bundle::Object;
use crate::diagnostics::Severity;
use crate::validate::Checked;

/// Each key of spec and status of each example is in the schema of its CRD.
pub(super) fn check(csv: &Csv<'_>, objects: &[Object], answer: &mut Answer) {
    let examples = match examples::read(csv) {
        Ok(examples) => examples,
        Err(error) => {
            examples::unreadable(csv, &error, answer);
            answer.result.error(error);
            return;
        }
    };
    answer
        .result
        .log(format!("Loaded {} Custom Resources from alm-examples", examples.len()));
    let of_version = |version: &'static str| {
        let is_crd =
            move |object: &&Object| object.kind() == "CustomResourceDefinition" && object.api_version() == version;
        objects
            .iter()
            .filter(is_crd)
            .filter_map(|object| Some((object, object.typed.as_ref()?)))
    };
    let crds: Vec<Crd<'_>> = of_version("apiextensions.k8s.io/v1")
        .map(|(object, crd)| Crd::new(object, crd, false))
        .chain(of_version("apiextensions.k8s.io/v1beta1").map(|(object, crd)| Crd::new(object, crd, true)))
        .collect();
    for example in &examples {
        if let Err(crash) = check_example(example, &crds, answer) {
            return crash.into_answer(csv, example, answer);
        }
    }
}

/// A CRD with its versions.
struct Crd<'a> {
    object: &'a Object,
    kind: &'a str,
    versions: Vec<(&'a str, Option<&'a Value>)>,
}

impl<'a> Crd<'a> {
    fn new(object: &'a Object, crd: &'a Value, is_beta: bool) -> Self {
        let text = |value: &'a Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let spec = crd.get("spec").unwrap_or(&Value::Null);
        // In v1beta1 one schema applies to all versions, and overrides those of the versions.
        let common = spec.get("validation").filter(|_| is_beta);
        let list = spec.get("versions").and_then(Value::as_array);
        let mut versions: Vec<_> = list
            .into_iter()
            .flatten()
            .map(|version| (text(version, "name"), common.or_else(|| version.get("schema"))))
            .collect();
        let single = text(spec, "version");
        if is_beta && versions.is_empty() && !single.is_empty() {
            versions.push((single, common));
        }
        Self {
            object,
            kind: spec.pointer("/names/kind").and_then(Value::as_str).unwrap_or_default(),
            versions,
        }
    }
}

/// A CRD is the example's if kind and version are, whatever the case of their letters. The group does not count.
fn check_example(example: &Example, crds: &[Crd<'_>], answer: &mut Answer) -> Result<(), Crash> {
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    for crd in crds.iter().filter(|crd| same(crd.kind, example.kind())) {
        for (version, schema) in crd.versions.iter().filter(|(name, _)| same(name, example.version())) {
            let Some(schema) = schema else {
                answer
                    .result
                    .suggest(format!("Add CRD validation for {}/{version}", crd.kind));
                let message = format!("version {version} of the CRD for {} has no schema", crd.kind);
                let checked = Checked::new(&SC_4, message)
                    .severity(Severity::Warning)
                    .at(crd.object, "/spec/versions");
                answer.add(checked.hint("add schema.openAPIV3Schema"));
                continue;
            };
            let mut failed = false;
            for part in ["spec", "status"] {
                let keys = example.keys(part)?;
                let Some(schema) = schema.get("openAPIV3Schema") else {
                    if keys.is_empty() {
                        continue;
                    }
                    return Err(Crash {
                        error: format!(
                            "version {version} of the CRD for {} has a schema without openAPIV3Schema; operator-sdk crashes on it",
                            crd.kind
                        ),
                        panic: "runtime error: invalid memory address or nil pointer dereference".to_owned(),
                    });
                };
                let properties = schema.pointer(&format!("/properties/{part}/properties"));
                for key in keys {
                    if properties.and_then(|properties| properties.get(key)).is_none() {
                        failed = true;
                        let message = format!(
                            "the schema of {} {version} lacks {part}.{key}, which an example has",
                            crd.kind
                        );
                        let checked = Checked::new(&SC_4, message).at(crd.object, "/spec/versions");
                        answer.add(checked.hint("add the field to the schema, or take it out of the example"));
                        answer.result.suggest(format!(
                            "Add CRD validation for {part} field `{key}` in {}/{}",
                            example.kind(),
                            example.version()
                        ));
                    }
                }
            }
            if failed {
                answer.result.state = State::Fail;
                return Ok(());
            }
        }
    }
    Ok(())
}
