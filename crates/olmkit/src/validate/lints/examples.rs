//! EX: validates the examples (`alm-examples`) against the schemas of the CRDs in the bundle. Consoles fill their forms
//! with them, so users try an invalid example first.

use std::collections::HashMap;

use serde_json::Value;

use crate::bundle::Object;
use crate::crd::instance::{self, InstanceFault, InstanceFinding, Work};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field};
use crate::yaml::{self, Node, Position, Style};

define_rules! {
    EX_1 = {
        id: "EX-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Each example in `alm-examples` should be valid against the schema and the CEL rules of its CRD, after defaulting.",
        why: "The API server rejects the first object that a user tries to create.",
        bad: "\"spec\": {\"size\": \"3\"}   # the schema requires an integer",
        good: "\"spec\": {\"size\": 3}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the object",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    EX_2 = {
        id: "EX-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Examples should not have fields that the schema does not define. The API server silently drops them.",
        why: "Users rely on a setting that has no effect.",
        bad: "\"spec\": {\"sise\": 3}",
        good: "\"spec\": {\"size\": 3}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server drops the field",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    EX_3 = {
        id: "EX-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Each example should have a name, and a version that its CRD serves.",
        why: "Users cannot create the example without changes.",
        bad: "\"apiVersion\": \"example.com/v1alpha1\"   # served: false",
        good: "\"apiVersion\": \"example.com/v1\"",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects an object without a name, and does not serve the version",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
}

const POINTER: &str = "/metadata/annotations/alm-examples";

/// At most this many findings are shown for one example.
const SHOWN: usize = 10;
/// And for all of them. Public bundles have some hundred.
const SHOWN_OF_ALL: usize = 2_000;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let Some(text) = csv.annotation("alm-examples") else {
        return Vec::new();
    };
    // CSV-6 and CSV-7 report an annotation that cannot be parsed.
    let Some(Ok(list)) = yaml::documents(text.as_bytes()).next() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut work = context.work.borrow_mut();
    let crds = context.crds_by_kind();
    let place = InAnnotation::new(context, csv.object);
    for (at, example) in list.items().iter().enumerate() {
        if found.len() > SHOWN_OF_ALL || work.is_exhausted() {
            let message = format!("{} more examples are not checked", list.items().len() - at);
            found.push(place.located(
                Checked::new(&EX_1, message).severity(Severity::Info),
                csv.object,
                example,
            ));
            break;
        }
        found.extend(check_example(&crds, &csv, (at, example), &place, &mut work));
    }
    found
}

fn check_example(
    crds: &Crds<'_>,
    csv: &Csv<'_>,
    (at, example): (usize, &Node),
    in_annotation: &InAnnotation,
    work: &mut Work,
) -> Vec<Checked> {
    let Ok(value) = example.to_json() else {
        return Vec::new();
    };
    let title = format!("example {} of {}", at + 1, field(&value, "kind"));
    let place = |checked: Checked, node: &Node| in_annotation.located(checked, csv.object, node);
    let mut found = Vec::new();
    if value
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        let checked =
            Checked::new(&EX_3, format!("{title} has no metadata.name")).hint("add a name, such as `example`");
        found.push(place(checked, example));
    }
    let Some((typed, version)) = definition(crds, &value) else {
        return found;
    };
    let Some((schema, served)) = instance::schema_of_version(typed, version) else {
        let checked = Checked::new(
            &EX_3,
            format!("{title} has version {version}, which its CRD does not define"),
        );
        found.push(place(checked, example.get("apiVersion").unwrap_or(example)));
        return found;
    };
    if !served {
        let checked = Checked::new(
            &EX_3,
            format!("{title} has version {version}, which its CRD does not serve"),
        );
        found.push(place(checked, example.get("apiVersion").unwrap_or(example)));
    }
    let has_status = instance::has_status(typed, version);
    let faults = schema
        .map(|schema| instance::check_created(schema, &value, has_status, work))
        .unwrap_or_default();
    // Fields that an example lacks are added together.
    let (lacking, others): (Vec<_>, Vec<_>) = faults.iter().partition(|fault| fault.message == instance::REQUIRED);
    if let Some(first) = lacking.first() {
        let fields = enumerated(&lacking);
        let message = match lacking.len() {
            1 => format!("the API server rejects {title}: {fields}: {}", instance::REQUIRED),
            _ => format!("the API server rejects {title}: {fields} are required"),
        };
        // The fix names the fields, so that only examples with the same missing fields are grouped.
        let checked = Checked::new(&EX_1, message).hint(format!("add {fields}"));
        found.push(place(checked, nearest(example, &first.pointer)));
    }
    for fault in others.iter().take(SHOWN) {
        let node = nearest(example, &fault.pointer);
        let checked = match fault.fault {
            InstanceFault::Unknown => {
                let hint = format!(
                    "remove {}, or define it in the schema",
                    instance::dotted(&fault.pointer)
                );
                Checked::new(&EX_2, format!("{title}: {fault}")).hint(hint)
            }
            InstanceFault::Invalid | InstanceFault::Rule => {
                Checked::new(&EX_1, format!("the API server rejects {title}: {fault}"))
            }
            InstanceFault::Impossible => Checked::new(&EX_1, format!("the API server rejects {title}: {fault}"))
                .hint("repair the schema (CRD-37)"),
        };
        found.push(place(checked, node));
    }
    if others.len() > SHOWN {
        let message = format!("{title} has {} more faults", others.len() - SHOWN);
        found.push(place(Checked::new(&EX_1, message), example));
    }
    found
}

/// Names fields.
fn enumerated(lacking: &[&InstanceFinding]) -> String {
    let paths: Vec<String> = lacking.iter().map(|fault| instance::dotted(&fault.pointer)).collect();
    match paths.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => {
            let shown: Vec<&str> = first.iter().take(SHOWN).map(String::as_str).collect();
            let last = match first.len().saturating_sub(SHOWN) {
                0 => last.clone(),
                more => format!("{} more", more + 1),
            };
            format!("{} and {last}", shown.join(", "))
        }
    }
}

/// The decoded CRDs by group and kind.
type Crds<'c> = HashMap<(&'c str, &'c str), (&'c Object, &'c Value)>;

/// The decoded CRD of an example in the bundle, and the example's version.
fn definition<'c>(crds: &Crds<'c>, example: &'c Value) -> Option<(&'c Value, &'c str)> {
    let (group, version) = field(example, "apiVersion").split_once('/')?;
    let (_, typed) = crds.get(&(group, field(example, "kind")))?;
    Some((*typed, version))
}

/// The node at a pointer, or its nearest existing parent.
fn nearest<'n>(root: &'n Node, pointer: &str) -> &'n Node {
    let mut shorter = pointer;
    loop {
        match (root.pointer(shorter), shorter.rsplit_once('/')) {
            (Some(node), _) => return node,
            (None, Some((parent, _))) => shorter = parent,
            (None, None) => return root,
        }
    }
}

/// The position of the annotation's value in its file, if it is a literal block, whose lines are those of the file.
struct InAnnotation(Option<(u32, u32)>);

impl InAnnotation {
    fn new(context: &Context<'_>, csv: &Object) -> Self {
        let (annotation, _) = csv.nearest(POINTER);
        if annotation.style != Style::Literal {
            return Self(None);
        }
        let source = context.bundle.tree.file(&csv.path).unwrap_or_default();
        let first_line = usize::try_from(annotation.start.line).unwrap_or(usize::MAX);
        let indentation = source
            .split(|byte| *byte == b'\n')
            .nth(first_line)
            .map_or(0, |line| line.iter().take_while(|byte| **byte == b' ').count());
        // If a list starts with spaces, the block's own indentation is not visible.
        Self(Some((annotation.start.line, u32::try_from(indentation).unwrap_or(0))))
    }

    fn located(&self, checked: Checked, csv: &Object, node: &Node) -> Checked {
        let mut checked = checked.at(csv, POINTER);
        let Some((line, indentation)) = self.0 else {
            return checked;
        };
        let in_file = |inner: Position| Position {
            line: line.saturating_add(inner.line),
            column: inner.column.saturating_add(indentation),
        };
        checked.finding.position = Some(in_file(node.start));
        checked.finding.end = Some(in_file(node.end));
        checked
    }
}
