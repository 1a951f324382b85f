//! META-4: a bundle that requires an API that it owns.

use crate::diagnostics::{Origin, Severity, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, field};
use crate::yaml::{self, Node};

define_rules! {
    META_4 = {
        id: "META-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A bundle should not require an API that it owns.",
        why: "The resolver may look for another operator that provides the API, and two owners of one API cannot be installed together.",
        bad: "dependencies:\n- type: olm.gvk\n  value: {group: example.com, version: v1, kind: Widget}   # and owns Widget",
        good: "remove the dependency",
        since: "0.1.0",
    }
}

const DEPENDENCIES: &str = "metadata/dependencies.yaml";
const HINT: &str = "remove it: the resolver may look for another operator that has the API, and two that own one API cannot be \
                    installed together";

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let owned: Vec<(&str, &str, &str)> = csv
        .list("/spec/customresourcedefinitions/owned")
        .iter()
        .filter_map(|api| {
            let (_, group) = field(api, "name").split_once('.')?;
            Some((group, field(api, "version"), field(api, "kind")))
        })
        .collect();
    let finding = |group: &str, version: &str, kind: &str| {
        Checked::new(
            &META_4,
            format!("the bundle requires {kind} of {group}/{version}, which it owns"),
        )
        .hint(HINT)
    };
    let mut findings = Vec::new();
    let required = "/spec/customresourcedefinitions/required";
    for (at, api) in csv.list(required).iter().enumerate() {
        let group = field(api, "name").split_once('.').map_or("", |(_, group)| group);
        let key = (group, field(api, "version"), field(api, "kind"));
        if owned.contains(&key) {
            findings.push(finding(key.0, key.1, key.2).at(csv.object, &format!("{required}/{at}")));
        }
    }
    let file = context
        .bundle
        .tree
        .file(DEPENDENCIES)
        .and_then(|bytes| yaml::parse(bytes).ok());
    let list = file.as_ref().and_then(|file| file.get("dependencies"));
    for dependency in list.map(Node::items).unwrap_or_default() {
        let text = |key: &str| {
            let value = dependency.get("value").and_then(|value| value.get(key));
            value.and_then(Node::as_str).unwrap_or_default()
        };
        let key = (text("group"), text("version"), text("kind"));
        let is_api = dependency.get("type").and_then(Node::as_str) == Some("olm.gvk");
        if is_api && owned.contains(&key) {
            let mut checked = finding(key.0, key.1, key.2).in_file(DEPENDENCIES);
            checked.finding = checked.finding.at_node(dependency);
            findings.push(checked);
        }
    }
    findings
}
