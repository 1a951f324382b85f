//! UPG-4 to UPG-6, CRD-31 to CRD-36, EX-4, V1-13: effects of an upgrade from an earlier bundle on existing custom
//! resources, and whether OLM v1 allows it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::bundle::Object;
use crate::crd::compatibility::{Change, Loss, compare};
use crate::crd::instance::{self, InstanceFault, Work};
use crate::crd::upgrade::{self, Problem, Side};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::Version;
use crate::validate::against::{Against, Earlier, replaced};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field};
use crate::validate::olm_v1::{V1_13, hint_to_change_back};
use olmkit_go::structs::restore::restore;

define_rules! {
    UPG_4 = {
        id: "UPG-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "`replaces` should name a bundle of the catalog (`--against CATALOG`).",
        why: "Clusters with earlier versions find no upgrade path to this one.",
        bad: "replaces: demo.v0.9.0   # the catalog ends with demo.v0.8.0",
        good: "replaces: demo.v0.8.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "an upgrade path ends where replaces names nothing",
            "any",
            "https://olm.operatorframework.io/docs/concepts/olm-architecture/operator-catalog/creating-an-update-graph/",
        ),
    }
    UPG_5 = {
        id: "UPG-5",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The version should be higher than that of the replaced bundle (`--against`).",
        why: "OLM would lower the version of a running operator.",
        bad: "version: 1.1.0   # replaces 1.2.0",
        good: "version: 1.2.1",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "OLM follows the graph, whatever the versions are",
            "any",
            "https://olm.operatorframework.io/docs/concepts/olm-architecture/operator-catalog/creating-an-update-graph/",
        ),
    }
    UPG_6 = {
        id: "UPG-6",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The catalog should contain the CRDs of the replaced bundle (`--against CATALOG`).",
        why: "Without them there is nothing to compare, and the other upgrade rules stay silent.",
        bad: "olmkit catalog render --migrate-level bundle-object-to-csv-metadata …",
        good: "olmkit bundle validate DIRECTORY --against quay.io/example/demo-bundle:v0.9.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "nothing can be compared",
            "any",
            "docs/guides/validate.md",
        ),
    }
    CRD_31 = {
        id: "CRD-31",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An upgrade should keep every CRD of the earlier bundle (`--against`). OLM leaves removed CRDs in the cluster without an operator.",
        why: "The users' objects stay behind, and no operator reconciles them.",
        bad: "widgets.example.com is only in the earlier bundle",
        good: "keep the definition, or announce its removal",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "OLM never deletes a definition",
            "any",
            "https://olm.operatorframework.io/docs/tasks/uninstall-operator/",
        ),
    }
    CRD_32 = {
        id: "CRD-32",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An upgrade should keep stored and served versions (`--against`). OLM rejects the removal of a stored version.",
        why: "Objects in etcd could no longer be read.",
        bad: "versions:\n- name: v1   # v1beta1 was stored",
        good: "versions:\n- {name: v1, served: true, storage: true}\n- {name: v1beta1, served: true, storage: false}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects a definition that lacks a stored version",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    CRD_33 = {
        id: "CRD-33",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An upgrade should keep scope and kind of a CRD (`--against`). The API server rejects their change.",
        why: "The upgrade stops. The only fix is to delete the CRD with all its custom resources.",
        bad: "scope: Cluster   # was Namespaced",
        good: "scope: Namespaced",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the change",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    CRD_34 = {
        id: "CRD-34",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A schema should accept every object that the earlier schema accepted (`--against`). OLM rejects an upgrade that makes an object invalid.",
        why: "The upgrade stops on clusters where such objects exist.",
        bad: "maximum: 3   # was 5",
        good: "maximum: 5",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the InstallPlan fails while such an object exists: updated validation is too restrictive",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    CRD_35 = {
        id: "CRD-35",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An upgrade should keep every field of a schema (`--against`). The API server silently drops removed fields from objects.",
        why: "Users lose settings with the first write after the upgrade.",
        bad: "properties: {replicas: {type: integer}}   # was size",
        good: "properties:\n  size: {type: integer, description: 'Deprecated: use replicas.'}\n  replicas: {type: integer}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server drops the field with the next write",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    CRD_36 = {
        id: "CRD-36",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Versions with different schemas should have a conversion webhook (`--against`). Without one, only the apiVersion of an object changes.",
        why: "The values of renamed or moved fields are lost.",
        bad: "conversion: {strategy: None}   # was Webhook",
        good: "conversion: {strategy: Webhook, …}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "an object read in the other version lacks the values of renamed fields",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    EX_4 = {
        id: "EX-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The examples of the earlier bundle should still be valid (`--against`), because users have such objects.",
        why: "The upgrade makes objects invalid that users created from the examples.",
        bad: "required: [size]   # the earlier example has none",
        good: "size: {type: integer, default: 1}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the InstallPlan fails while such an object exists: updated validation is too restrictive",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
}

/// At most this many findings of one rule are shown for one CRD and one earlier bundle.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let (Some(against), Some(csv)) = (context.options.against.as_deref(), context.csv()) else {
        return Vec::new();
    };
    match against {
        Against::Bundle(earlier) => from(context, &csv, earlier),
        Against::Catalog { name, catalog } => {
            let package = context.bundle.package();
            let mut findings: Vec<Checked> = unknown(&csv, name, package, catalog).into_iter().collect();
            for bundle in replaced(catalog, package, &csv) {
                match Earlier::from_blob(bundle) {
                    Ok(earlier) => findings.extend(from(context, &csv, &earlier)),
                    Err(error) => {
                        findings.push(Checked::new(&UPG_6, error.to_string()).at(csv.object, "/spec/replaces"))
                    }
                }
            }
            findings
        }
    }
}

/// `replaces` must name a bundle of the catalog.
fn unknown(csv: &Csv<'_>, name: &str, package: &str, catalog: &crate::catalog::Catalog) -> Option<Checked> {
    let replaces = csv.text("/spec/replaces");
    let known = |bundle: &crate::catalog::Bundle| bundle.package == package && bundle.name == replaces;
    let is_new = !catalog.bundles.iter().any(|bundle| bundle.package == package);
    if replaces.is_empty() || is_new || catalog.bundles.iter().any(known) {
        return None;
    }
    let message = format!("{name} has no bundle {replaces} in package {package}: there is no upgrade path from it");
    Some(
        Checked::new(&UPG_4, message)
            .at(csv.object, "/spec/replaces")
            .hint("use the head of the channel that this bundle is added to"),
    )
}

fn from(context: &Context<'_>, csv: &Csv<'_>, earlier: &Earlier) -> Vec<Checked> {
    let mut findings: Vec<Checked> = version(csv, earlier).into_iter().collect();
    let (by_name, by_kind) = (context.crds_by_name(), context.crds_by_kind());
    for old in &earlier.definitions {
        let name = old
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let new = by_name.get(name).copied();
        match new.and_then(|crd| Some((crd, crd.typed.as_ref()?))) {
            Some((crd, typed)) => findings.extend(definition(crd, old, typed, earlier)),
            // LOAD-7 reports a definition that does not decode.
            None if new.is_some() => {}
            None => {
                let message = format!(
                    "{} has {name}, this bundle does not: its objects stay without an operator",
                    earlier.name
                );
                let hint =
                    "keep the CRD until users have removed its objects, or explain in the release notes what to do";
                findings.push(
                    Checked::new(&CRD_31, message)
                        .at(csv.object, "/spec/customresourcedefinitions/owned")
                        .hint(hint),
                );
            }
        }
    }
    let mut work = context.work.borrow_mut();
    for (at, example) in earlier.examples.iter().enumerate() {
        findings.extend(stored(&by_kind, example, earlier, &mut work));
        if work.is_exhausted() {
            let left = earlier.examples.len() - at;
            let message = format!(
                "{left} examples of {} are not checked against patterns and rules, which take too long",
                earlier.name
            );
            let checked = Checked::new(&EX_4, message).severity(Severity::Info);
            findings.push(checked.at(csv.object, "/spec/replaces"));
            break;
        }
    }
    findings
}

fn version(csv: &Csv<'_>, earlier: &Earlier) -> Option<Checked> {
    let now = Version::parse_tolerant(csv.text("/spec/version")).ok()?;
    let before = earlier.version.as_ref().filter(|before| **before >= now)?;
    let message = format!(
        "spec.version {now} is not higher than {before} of {}, which this bundle replaces",
        earlier.name
    );
    Some(
        Checked::new(&UPG_5, message)
            .at(csv.object, "/spec/version")
            .hint("use a higher version"),
    )
}

fn definition(crd: &Object, old: &Value, new: &Value, earlier: &Earlier) -> Vec<Checked> {
    let mut findings = Vec::new();
    if let Err(error) = upgrade::check_values(old, new) {
        // An error: a CRD that is too large must not pass as an unchanged one.
        let message = format!("since {}: {}", earlier.name, error.problem());
        return vec![Checked::new(&V1_13, message).at(crd, "/spec/versions")];
    }
    let changes = compare(old, new);
    for (loss, rule) in [
        (Loss::Version, &CRD_32),
        (Loss::Identity, &CRD_33),
        (Loss::Value, &CRD_34),
        (Loss::Field, &CRD_35),
        (Loss::Conversion, &CRD_36),
    ] {
        let of_rule: Vec<_> = changes.iter().filter(|change| change.loss == loss).collect();
        for change in of_rule.iter().take(SHOWN) {
            let message = format!("since {}: {}", earlier.name, change.message);
            findings.push(Checked::new(rule, message).at(crd, &change.pointer).hint(change.hint));
        }
        if of_rule.len() > SHOWN {
            let message = format!("since {}: {} more such changes", earlier.name, of_rule.len() - SHOWN);
            findings.push(Checked::new(rule, message).at(crd, "/spec/versions"));
        }
    }
    findings.extend(blocked(crd, old, earlier, &changes));
    findings
}

/// Changes that OLM v1 blocks and the other rules do not report. OLM v0 does not reject the bundle, so it is a warning.
fn blocked(crd: &Object, old: &Value, earlier: &Earlier, changes: &[Change]) -> Vec<Checked> {
    // A CRD can have megabytes, so each form is dropped before the next one is made.
    let as_applied = |definition: &Value| {
        let restored = restore(definition, "v1.CustomResourceDefinition").ok()?;
        Some((upgrade::printed(&restored), upgrade::stored_versions(&restored)))
    };
    let (Some((old, stored)), Some((new, _))) = (as_applied(old), as_applied(&crd.value)) else {
        return Vec::new();
    };
    let problems = upgrade::check_printed(&old, &new, &stored);
    let problems = problems.unwrap_or_else(|error| vec![error.problem()]);
    let known = ReportedChanges::new(changes);
    let rest: Vec<&Problem> = problems.iter().filter(|problem| !known.has(problem)).collect();
    let mut findings: Vec<Checked> = rest
        .iter()
        .take(SHOWN)
        .map(|problem| {
            let message = format!("since {}: OLM v1 blocks the upgrade: {problem}", earlier.name);
            let pointer = match problem.side {
                Side::New => problem.pointer.as_str(),
                Side::Old => "/spec/versions",
            };
            Checked::new(&V1_13, message)
                .severity(Severity::Warning)
                .at(crd, pointer)
                .hint(hint_to_change_back(&earlier.name))
        })
        .collect();
    if rest.len() > SHOWN {
        let message = format!(
            "since {}: {} more changes that OLM v1 blocks",
            earlier.name,
            rest.len() - SHOWN
        );
        findings.push(
            Checked::new(&V1_13, message)
                .severity(Severity::Warning)
                .at(crd, "/spec/versions"),
        );
    }
    findings
}

/// The changes that are already reported.
struct ReportedChanges<'c> {
    losses: HashSet<Loss>,
    /// The schemas of changes that lose values or fields.
    schemas: HashSet<&'c str>,
}

impl<'c> ReportedChanges<'c> {
    fn new(changes: &'c [Change]) -> Self {
        let of_schemas = changes
            .iter()
            .filter(|change| matches!(change.loss, Loss::Value | Loss::Field));
        Self {
            losses: changes.iter().map(|change| change.loss).collect(),
            schemas: of_schemas.map(|change| schema_of(&change.pointer)).collect(),
        }
    }

    /// Returns true if OLM v1 blocks a change that is already reported.
    fn has(&self, problem: &Problem) -> bool {
        match problem.validation {
            "existingFieldRemoval" => self.losses.contains(&Loss::Field),
            "storedVersionRemoval" => self.losses.contains(&Loss::Version),
            "scope" => self.losses.contains(&Loss::Identity),
            _ => self.schemas.contains(schema_of(&problem.pointer)),
        }
    }
}

/// The schema that contains a pointer, regardless of the index of its version.
fn schema_of(pointer: &str) -> &str {
    let rest = pointer
        .strip_prefix("/spec/versions/")
        .and_then(|rest| rest.split_once('/'));
    let pointer = rest.map_or(pointer, |(_, below)| below);
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return pointer;
    };
    let is_schema =
        parent.ends_with("/properties") || ["items", "additionalProperties", "openAPIV3Schema"].contains(&last);
    if is_schema { pointer } else { parent }
}

/// The decoded CRDs by group and kind.
type Crds<'c> = HashMap<(&'c str, &'c str), (&'c Object, &'c Value)>;

/// An example of the earlier bundle represents the custom resources in clusters, which OLM validates against the new
/// schemas.
fn stored(crds: &Crds<'_>, example: &Value, earlier: &Earlier, work: &mut Work) -> Option<Checked> {
    let (group, version) = field(example, "apiVersion").split_once('/')?;
    let kind = field(example, "kind");
    let (crd, typed) = *crds.get(&(group, kind))?;
    // CRD-32 reports a removed version.
    let (schema, _) = instance::schema_of_version(typed, version)?;
    let was_fine = earlier.definitions.iter().any(|old| {
        let same = old.pointer("/metadata/name") == typed.pointer("/metadata/name");
        let schema = instance::schema_of_version(old, version).and_then(|(schema, _)| schema);
        same && schema.is_none_or(|schema| refusal(schema, example, work).is_none())
    });
    let fault = refusal(schema?, example, work).filter(|_| was_fine && !work.is_exhausted())?;
    let at = typed
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .and_then(|versions| versions.iter().position(|own| field(own, "name") == version));
    let pointer = at.map_or("/spec".to_string(), |at| format!("/spec/versions/{at}/schema"));
    let message = format!("the example {kind} of {} is no longer valid: {fault}", earlier.name);
    let hint = "users have such objects; OLM rejects an upgrade that makes one invalid (\"updated validation is too restrictive\")";
    Some(Checked::new(&EX_4, message).at(crd, &pointer).hint(hint))
}

fn refusal(schema: &Value, object: &Value, work: &mut Work) -> Option<String> {
    instance::check_within(schema, object, work)
        .into_iter()
        .find(|finding| finding.fault != InstanceFault::Unknown)
        .map(|finding| finding.to_string())
}
