//! FILE, SIZE and META: the files of a bundle.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bundle::Object;
use crate::bundle::load::{MANIFESTS, METADATA, PREFIX};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::Context;
use crate::yaml::{self, Position};
use olmkit_go::json;

define_rules! {
    SIZE_1 = {
        id: "SIZE-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Each manifest should fit into one request to the API server (1.5 MB as JSON).",
        why: "etcd rejects a larger request, so the object cannot be created.",
        bad: "a CRD of 2 MB",
        good: "a CRD without descriptions",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "etcd rejects the request: request is too large",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    SIZE_2 = {
        id: "SIZE-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The annotations of an object should have at most 256 KiB in total.",
        why: "The API server rejects the object, so the installation fails.",
        bad: "alm-examples of 300 kB",
        good: "short examples",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the object: annotations are too long",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    FILE_1 = {
        id: "FILE-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A manifest file should contain one YAML document.",
        why: "OLM's tools read one document per file: the other objects are ignored or misread.",
        bad: "kind: Service\n---\nkind: ConfigMap",
        good: "two files",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm takes the first document only",
            "opm 1.73",
            "crates/cli/tests/cluster/lints/tools.rs: opm_does_what_rules_say",
        ),
    }
    FILE_2 = {
        id: "FILE-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "YAML keys should be unique. Otherwise parsers silently keep the last value.",
        why: "A change of the earlier value has no effect.",
        bad: "replicas: 1\nreplicas: 2",
        good: "replicas: 2",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm takes the last value",
            "opm 1.73",
            "crates/cli/tests/cluster/lints/tools.rs: opm_does_what_rules_say",
        ),
    }
    META_1 = {
        id: "META-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The annotations should name the directories `manifests/` and `metadata/`.",
        why: "Some tools follow the annotations. Other tools always read these directories.",
        bad: "bundle.metadata.v1: meta/",
        good: "bundle.metadata.v1: metadata/",
        since: "0.1.0",
    }
    META_2 = {
        id: "META-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "metadata/properties.yaml should contain a list of properties, each with type and value.",
        why: "A catalog built from the bundle lacks the properties, or cannot be built.",
        bad: "properties: {a: b}",
        good: "properties:\n- type: olm.maxOpenShiftVersion\n  value: \"4.15\"",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "the catalog that opm renders lacks the properties, or opm fails",
            "opm 1.73",
            "crates/cli/tests/cluster/lints/tools.rs: opm_does_what_rules_say",
        ),
    }
    META_3 = {
        id: "META-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The labels of a bundle image should match its annotations.",
        why: "Tools that do not unpack the image read the labels, OLM reads the annotations. opm does not recognize an image without the label of the package as a bundle.",
        bad: "LABEL operators.operatorframework.io.bundle.channels.v1=alpha\nchannels.v1: stable   # in annotations.yaml",
        good: "LABEL operators.operatorframework.io.bundle.channels.v1=stable",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "the Dockerfile's labels repeat the annotations. If they differ, OLM follows the annotations",
            "any",
            "https://github.com/operator-framework/operator-registry/blob/master/docs/design/operator-bundle.md",
        ),
    }
}

/// The annotation with the OpenShift versions of a bundle.
const OPENSHIFT_VERSIONS: &str = "com.redhat.openshift.versions";
/// Maximum bytes of one request to etcd.
const MOST_REQUEST_BYTES: usize = 1_500_000;
/// At most this many duplicate keys are shown for one file.
const SHOWN: usize = 10;
/// Maximum bytes of all annotations of one object.
const MOST_ANNOTATION_BYTES: usize = 256 << 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let of_object = |object| self::object(object, context.bundle.bytes(object));
    let mut findings: Vec<Checked> = context.bundle.objects.iter().flat_map(of_object).collect();
    findings.extend(annotations(context));
    findings.extend(labels(context));
    findings.extend(properties(context));
    findings
}

fn object(object: &Object, bytes_of_file: &[u8]) -> Vec<Checked> {
    let mut findings = Vec::new();
    if let Some(line) = object.second_document {
        let message = "this file contains more than one YAML document; OLM's tools ignore or misread the others";
        let mut checked = Checked::new(&FILE_1, message)
            .at(object, "")
            .hint("put each object in its own file");
        checked.finding.position = Some(Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        });
        checked.finding.end = None;
        findings.push(checked);
    }
    let duplicates = object.duplicates.iter().filter(|duplicate| !duplicate.merged);
    let more = duplicates.clone().count().saturating_sub(SHOWN);
    for duplicate in duplicates.take(SHOWN) {
        let message = format!(
            "duplicate key {:?} (first on line {}); the last one wins",
            duplicate.key, duplicate.first.line
        );
        let mut checked = Checked::new(&FILE_2, message)
            .at(object, "")
            .hint("remove one of the two");
        checked.finding.position = Some(duplicate.second);
        checked.finding.end = None;
        findings.push(checked);
    }
    if more > 0 {
        findings.push(Checked::new(&FILE_2, format!("{more} more duplicate keys")).at(object, ""));
    }
    let annotations = object.value.pointer("/metadata/annotations").and_then(Value::as_object);
    let bytes: usize = annotations
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > MOST_ANNOTATION_BYTES && matches!(object.kind(), "ClusterServiceVersion" | "CustomResourceDefinition") {
        let message =
            format!("the annotations have {bytes} bytes in total; the API server accepts {MOST_ANNOTATION_BYTES}");
        findings.push(
            Checked::new(&SIZE_2, message)
                .at(object, "/metadata/annotations")
                .hint("shorten the examples"),
        );
    }
    let size = json_size(object, bytes_of_file);
    if size > MOST_REQUEST_BYTES {
        let message =
            format!("the object has {size} bytes as JSON; etcd accepts about {MOST_REQUEST_BYTES} in one request");
        findings.push(
            Checked::new(&SIZE_1, message)
                .at(object, "")
                .hint("remove descriptions from the schemas, or split the API"),
        );
    }
    findings
}

/// Bytes of an object as JSON. 0 if its file is so small that they cannot be too many.
fn json_size(object: &Object, bytes_of_file: &[u8]) -> usize {
    if object.node.is_null() || (!has_aliases(bytes_of_file) && most_json_bytes(bytes_of_file) < MOST_REQUEST_BYTES) {
        return 0;
    }
    json::marshal_len(&object.value)
}

/// Returns true if a YAML file may have an alias, which can repeat anything. Text such as `R&D` or `a && b` is no anchor:
/// libyaml's names have letters, digits, hyphens and underscores.
fn has_aliases(file: &[u8]) -> bool {
    let is_at_a_node = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| file.get(before));
        let after = file.get(at + 1);
        let begins = before.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'[' | b'{' | b',' | b':'));
        begins && after.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let has = |indicator| memchr::memchr_iter(indicator, file).any(|at| is_at_a_node(&at));
    has(b'&') && has(b'*')
}

/// At least the bytes of a YAML file without aliases as JSON. This is faster than a count of the exact bytes.
fn most_json_bytes(file: &[u8]) -> usize {
    /// A node becomes at most `"":null,`, or a number such as 1e20 with all its digits.
    const NODE: usize = 28;
    /// `<` becomes `\u003c`, and the escape sequence `\0` becomes `\u0000`.
    const ESCAPED: usize = 5;
    let most = NODE + file.len() * (1 + NODE + ESCAPED);
    if most < MOST_REQUEST_BYTES {
        return most;
    }
    let nodes = count(file, |byte| {
        let is_bracket = byte & !(b'[' ^ b'{') == b'[';
        (byte == b'\n') | (byte == b':') | is_bracket | (byte.wrapping_sub(b',') <= b'-' - b',')
    });
    let escaped = count(file, |byte| {
        let is_angle = byte & !(b'<' ^ b'>') == b'<';
        let is_named = is_angle | (byte & !(b'"' ^ b'&') == b'"') | (byte == b'\\');
        is_named | (byte.wrapping_sub(b' ') >= 0x7f - b' ')
    });
    NODE + file.len() + NODE * nodes + ESCAPED * escaped
}

/// The number of bytes of a kind. Parts of constant size, whose count fits into a byte, become vector instructions.
fn count(bytes: &[u8], is_one: impl Fn(u8) -> bool) -> usize {
    let of_part = |part: &[u8]| {
        part.iter()
            .fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(is_one(*byte))))
    };
    let (parts, rest) = bytes.as_chunks::<240>();
    let whole: usize = parts.iter().map(|part| usize::from(of_part(part))).sum();
    whole + usize::from(of_part(rest))
}

fn annotations(context: &Context<'_>) -> Vec<Checked> {
    let metadata = &context.bundle.metadata;
    let wrong = |key: &str, directory: &str| {
        let value = metadata.get(key)?;
        let clean = value.trim_start_matches("./").trim_end_matches('/');
        (clean != directory).then(|| {
            let message = format!("annotation {key} is {value:?}, but the directory is {directory}/");
            Checked::new(&META_1, message)
                .in_file(&metadata.file)
                .hint(format!("write `{directory}/`"))
        })
    };
    [wrong(MANIFESTS, "manifests"), wrong(METADATA, "metadata")]
        .into_iter()
        .flatten()
        .collect()
}

/// The image labels must repeat the annotations: some tools read the labels, others the annotations.
fn labels(context: &Context<'_>) -> Vec<Checked> {
    let metadata = &context.bundle.metadata;
    let Some(labels) = &context.options.image_labels else {
        return Vec::new();
    };
    let found = |message: String| {
        Checked::new(&META_3, message)
            .in_file(&metadata.file)
            .hint("make the Dockerfile's labels match the annotations; `olmkit image build` derives them")
    };
    if !labels.keys().any(|key| key.starts_with(PREFIX)) {
        let message = format!("the image has no label {PREFIX}…, so opm does not recognize it as a bundle image");
        return vec![found(message)];
    }
    let keys = labels.keys().chain(metadata.annotations.keys()).map(String::as_str);
    let mut keys: BTreeSet<&str> = keys.filter(|key| key.starts_with(PREFIX)).collect();
    // Generated Dockerfiles have no such label, and pipelines add it.
    keys.extend(labels.get_key_value(OPENSHIFT_VERSIONS).map(|(key, _)| key.as_str()));
    let shown = |value: Option<&str>| value.map_or("missing".to_string(), |value| format!("{value:?}"));
    keys.into_iter()
        .filter_map(|key| {
            let (label, annotation) = (labels.get(key).map(String::as_str), metadata.get(key));
            (label != annotation).then(|| {
                found(format!(
                    "image label {key} is {}, but the annotation is {}",
                    shown(label),
                    shown(annotation)
                ))
            })
        })
        .collect()
}

fn properties(context: &Context<'_>) -> Option<Checked> {
    let path = "metadata/properties.yaml";
    let bytes = context.bundle.tree.file(path)?;
    let problem = |message: String, position: Option<Position>| {
        let mut checked = Checked::new(&META_2, message)
            .in_file(path)
            .hint("add `properties:` with a list of `type` and `value`");
        checked.finding.position = position;
        Some(checked)
    };
    let node = match yaml::parse(bytes) {
        Ok(node) => node,
        Err(error) => return problem(format!("cannot parse the properties: {error}"), error.position()),
    };
    let list = node.get("properties").unwrap_or(&node);
    if !list.is_sequence() {
        return problem("`properties` must be a list".to_string(), Some(list.start));
    }
    let incomplete = list
        .items()
        .iter()
        .find(|item| item.get("type").and_then(yaml::Node::as_str).is_none() || item.get("value").is_none());
    incomplete.and_then(|item| problem("this property has no `type` or `value`".to_string(), Some(item.start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_told_from_text() {
        for text in ["a: &x 1\nb: *x\n", "[&x 1,*x]", "&x a: {b: 1, c: *x}", "\"a\":&x\n- *x"] {
            assert!(has_aliases(text.as_bytes()), "{text:?}");
        }
        for text in [
            "a: R&D\nb: 5*3",
            "a: b & c * d",
            "a: '&'\nb: *",
            "a: &x 1\n",
            "a: b && **c**",
        ] {
            assert!(!has_aliases(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn json_has_at_most_the_estimated_bytes() {
        let escapes = format!("a: \"{}\"\n", "\\0\\L\\x3c\\e".repeat(100));
        let hyphens = format!("a:\n{}", "- - - -\n".repeat(50));
        let cases = [
            "{a,b,c,d}".to_owned(),
            format!("[{}]", "<,".repeat(100)),
            format!("[{}]", "1e20,".repeat(100)),
            format!("a: [{}]", "[],{},~,".repeat(100)),
            format!("a: |\n  {}\n", "<>\t".repeat(100)),
            format!("a: '{}'", "\"'' <".repeat(100)),
            "a:\nb:\n\"\":\n\"c\":\n".to_owned(),
            escapes,
            hyphens,
        ];
        for text in cases {
            let node = yaml::parse(text.as_bytes()).unwrap();
            let value = node.to_json().unwrap();
            let (exact, most) = (json::marshal_len(&value), most_json_bytes(text.as_bytes()));
            assert!(exact <= most, "{text:?}: {exact} of {most}");
        }
    }
}
