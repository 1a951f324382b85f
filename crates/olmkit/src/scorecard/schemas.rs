//! `olm-crds-have-validation`

use olmkit_scorecard::{State, TestResult};
use serde_json::Value;

use super::builtin::Csv;
use super::examples::{self, Crash, Example};
use crate::bundle::Object;

/// Each key of spec and status of each example is in the schema of its CRD.
pub(super) fn check(csv: &Csv<'_>, objects: &[Object], result: &mut TestResult) {
    let examples = match examples::read(csv) {
        Ok(examples) => examples,
        Err(error) => {
            result.error(error);
            return;
        }
    };
    result.log(format!("Loaded {} Custom Resources from alm-examples", examples.len()));
    let of_version = |version: &'static str| {
        let is_crd =
            move |object: &&Object| object.kind() == "CustomResourceDefinition" && object.api_version() == version;
        objects.iter().filter(is_crd).filter_map(|object| object.typed.as_ref())
    };
    let crds: Vec<Crd<'_>> = of_version("apiextensions.k8s.io/v1")
        .map(|crd| Crd::new(crd, false))
        .chain(of_version("apiextensions.k8s.io/v1beta1").map(|crd| Crd::new(crd, true)))
        .collect();
    for example in &examples {
        if let Err(crash) = check_example(example, &crds, result) {
            return crash.into_result(result);
        }
    }
}

/// A CRD with its versions.
struct Crd<'a> {
    kind: &'a str,
    versions: Vec<(&'a str, Option<&'a Value>)>,
}

impl<'a> Crd<'a> {
    fn new(crd: &'a Value, is_beta: bool) -> Self {
        let text = |value: &'a Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let spec = crd.get("spec").unwrap_or(&Value::Null);
        // In v1beta1 one schema holds for all versions, and wins over those of the versions.
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
            kind: spec.pointer("/names/kind").and_then(Value::as_str).unwrap_or_default(),
            versions,
        }
    }
}

/// A CRD is the example's if kind and version are, whatever the case of their letters; the group does not count.
fn check_example(example: &Example, crds: &[Crd<'_>], result: &mut TestResult) -> Result<(), Crash> {
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    for crd in crds.iter().filter(|crd| same(crd.kind, example.kind())) {
        for (version, schema) in crd.versions.iter().filter(|(name, _)| same(name, example.version())) {
            let Some(schema) = schema else {
                result.suggest(format!("Add CRD validation for {}/{version}", crd.kind));
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
                        result.suggest(format!(
                            "Add CRD validation for {part} field `{key}` in {}/{}",
                            example.kind(),
                            example.version()
                        ));
                    }
                }
            }
            if failed {
                result.state = State::Fail;
                return Ok(());
            }
        }
    }
    Ok(())
}
