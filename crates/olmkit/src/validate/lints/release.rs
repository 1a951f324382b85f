//! CHAN, NAME, COPY and UPG: the bundle's position among the others of its package.

use crate::bundle::load::{CHANNELS, DEFAULT_CHANNEL, PACKAGE};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::{Version, VersionRange, dns1123_label_problems};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, strings};

define_rules! {
    CHAN_2 = {
        id: "CHAN-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Channel names should not be empty or contain spaces.",
        why: "Spaces become part of the name, so users do not find the channel under the name they expect.",
        bad: "channels: \"beta, stable\"",
        good: "channels: beta,stable",
        since: "0.1.0",
    }
    CHAN_3 = {
        id: "CHAN-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A bundle in several channels should name a default channel.",
        why: "opm takes the channel that sorts first as the default, which a new channel may change.",
        bad: "channels: beta,stable",
        good: "channels: beta,stable\ndefault: stable",
        since: "0.1.0",
    }
    CHAN_4 = {
        id: "CHAN-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The package name should be a DNS label. opm rejects other names.",
        why: "The bundle builds, but cannot be added to a catalog.",
        bad: "package: My_Operator",
        good: "package: my-operator",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm rejects the catalog: invalid package name",
            "opm 1.73",
            "crates/olmkit/tests/library/catalogs/answers.rs: catalogs_get_the_verdicts_of_opm",
        ),
    }
    NAME_1 = {
        id: "NAME-1",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The version in the name should equal `spec.version`.",
        why: "Users read one version, and OLM orders by the other.",
        bad: "name: demo.v1.0.0\nversion: 1.0.1",
        good: "name: demo.v1.0.1\nversion: 1.0.1",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "the name is <package>.v<version>",
            "any",
            "https://olm.operatorframework.io/docs/tasks/creating-operator-manifests/",
        ),
    }
    COPY_1 = {
        id: "COPY-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The ClusterServiceVersion should not have the annotation `olm.operatorNamespace` or the label `olm.copiedFrom`.",
        why: "In every namespace but the one that the annotation names OLM takes the ClusterServiceVersion for a copy of another one, and installs nothing.",
        bad: "olm.operatorNamespace: demo-system",
        good: "operatorframework.io/suggested-namespace: demo-system",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the ClusterServiceVersion stays without a phase, or is removed",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    UPG_1 = {
        id: "UPG-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A bundle should not replace or skip itself.",
        why: "The channel then has a cycle or no head, and opm rejects it.",
        bad: "replaces: demo.v1.0.0   # in demo.v1.0.0",
        good: "replaces: demo.v0.9.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm rejects the catalog: no channel head found in graph",
            "opm 1.73",
            "crates/olmkit/tests/library/catalogs/answers.rs: catalogs_get_the_verdicts_of_opm",
        ),
    }
    UPG_2 = {
        id: "UPG-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "`olm.skipRange` should be a valid version range.",
        why: "OLM upgrades from every version in the range. A range that does not parse contains none.",
        bad: "olm.skipRange: ~1.0",
        good: "olm.skipRange: '>=1.0.0 <1.1.0'",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm rejects the catalog: invalid skipRange",
            "opm 1.73",
            "crates/olmkit/tests/library/catalogs/answers.rs: catalogs_get_the_verdicts_of_opm",
        ),
    }
    UPG_3 = {
        id: "UPG-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "`olm.skipRange` should not contain the bundle's own version.",
        why: "OLM would offer the bundle as its own upgrade.",
        bad: "olm.skipRange: '<=1.1.0'   # in 1.1.0",
        good: "olm.skipRange: '<1.1.0'",
        since: "0.1.0",
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = channels(context);
    if let Some(csv) = context.csv() {
        findings.extend(name(&csv));
        findings.extend(copy(&csv));
        findings.extend(upgrades(&csv));
    }
    findings
}

fn channels(context: &Context<'_>) -> Vec<Checked> {
    let bundle = context.bundle;
    let place = |checked: Checked, key: &str| {
        let mut checked = checked.in_file(&bundle.metadata.file);
        checked.finding.path = Some(format!("annotations[{key:?}]"));
        let node = bundle
            .tree
            .file(&bundle.metadata.file)
            .and_then(|bytes| crate::yaml::parse(bytes).ok());
        let node = node
            .as_ref()
            .and_then(|node| node.get("annotations"))
            .and_then(|map| map.get(key));
        checked.finding.position = node.map(|node| node.start);
        checked
    };
    let mut findings = Vec::new();
    let channels = bundle.channels();
    let text = bundle.metadata.get(CHANNELS).unwrap_or_default();
    if bundle.default_channel().is_none() && channels.len() > 1 {
        let message = "the bundle is in several channels but names no default channel";
        let hint = format!("add `{DEFAULT_CHANNEL}`");
        findings.push(place(Checked::new(&CHAN_3, message), CHANNELS).hint(hint));
    }
    let odd = text
        .split(',')
        .find(|channel| channel.trim() != *channel || channel.is_empty() || channel.contains(char::is_whitespace));
    if let Some(channel) = odd.filter(|_| !text.is_empty()) {
        let message = format!("channel {channel:?} is empty or contains spaces, which become part of the name");
        findings.push(place(Checked::new(&CHAN_2, message), CHANNELS).hint("separate channels with commas only"));
    }
    let package = bundle.package();
    if let Some(fault) = dns1123_label_problems(package)
        .first()
        .filter(|_| bundle.metadata.get(PACKAGE).is_some())
    {
        let message = format!("package {package:?} is not a DNS label: {fault}");
        findings.push(place(Checked::new(&CHAN_4, message), PACKAGE).hint("use lower-case letters, digits and `-`"));
    }
    findings
}

/// The marks by which OLM identifies the copies of a ClusterServiceVersion in other namespaces.
fn copy(csv: &Csv<'_>) -> Option<Checked> {
    let label = "/metadata/labels/olm.copiedFrom";
    let (place, message) = match csv.annotation("olm.operatorNamespace") {
        Some(namespace) => (
            "/metadata/annotations/olm.operatorNamespace",
            format!(
                "in every namespace but {namespace:?} OLM takes the ClusterServiceVersion for a copy, and installs nothing"
            ),
        ),
        None => {
            csv.object.value.pointer(label)?;
            let message = "OLM takes the ClusterServiceVersion for a copy, and installs nothing";
            (label, message.to_string())
        }
    };
    let hint = "remove it: OLM sets it; the annotation `operatorframework.io/suggested-namespace` suggests a namespace";
    Some(Checked::new(&COPY_1, message).at(csv.object, place).hint(hint))
}

fn name(csv: &Csv<'_>) -> Option<Checked> {
    let (_, suffix) = csv.name().split_once(".v")?;
    let (in_name, in_spec) = (
        Version::parse(suffix).ok()?,
        Version::parse(csv.text("/spec/version")).ok()?,
    );
    // A name cannot contain the plus sign of build metadata. A dash or a dot replaces it.
    let plain = in_spec.to_string().replace('+', "-");
    if in_name == in_spec || suffix == plain || in_spec.to_string().replace('+', ".") == suffix {
        return None;
    }
    let message = format!("the name has version {suffix}, but `spec.version` is {in_spec}");
    Some(
        Checked::new(&NAME_1, message)
            .at(csv.object, "/spec/version")
            .hint("OLM orders upgrades by spec.version: make both equal"),
    )
}

fn upgrades(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let name = csv.name();
    if !name.is_empty() && csv.text("/spec/replaces") == name {
        findings.push(
            Checked::new(&UPG_1, "the bundle replaces itself")
                .at(csv.object, "/spec/replaces")
                .hint("use the name of the previous version"),
        );
    }
    if strings(csv.get("/spec"), "skips").any(|skipped| skipped == name) && !name.is_empty() {
        findings.push(
            Checked::new(&UPG_1, "the bundle skips itself")
                .at(csv.object, "/spec/skips")
                .hint("remove the bundle's own name from it"),
        );
    }
    let Some(range) = csv.annotation("olm.skipRange").filter(|range| !range.is_empty()) else {
        return findings;
    };
    let pointer = "/metadata/annotations/olm.skipRange";
    match VersionRange::parse(range) {
        Err(error) => {
            let message = format!("olm.skipRange is not a version range: {error}");
            findings.push(
                Checked::new(&UPG_2, message)
                    .at(csv.object, pointer)
                    .hint("use a range such as `>=1.0.0 <1.2.0`"),
            );
        }
        Ok(parsed) => {
            let version = Version::parse(csv.text("/spec/version")).ok();
            if let Some(version) = version.filter(|version| parsed.contains(version)) {
                let message = format!("olm.skipRange {range:?} contains the bundle's own version {version}");
                findings.push(
                    Checked::new(&UPG_3, message)
                        .at(csv.object, pointer)
                        .hint(format!("end the range with `<{version}`")),
                );
            }
        }
    }
    findings
}
