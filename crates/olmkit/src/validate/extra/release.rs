//! CHAN, NAME and UPG: where the bundle stands among the others of its package.

use super::super::checked::Checked;
use super::super::context::{Context, Csv, strings};
use super::warning;
use crate::bundle::load::{CHANNELS, DEFAULT_CHANNEL, PACKAGE};
use crate::object::{Version, VersionRange, dns1123_label_problems};

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = channels(context);
    if let Some(csv) = context.csv() {
        findings.extend(name(&csv));
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
    match bundle.default_channel() {
        Some(default) if !channels.contains(&default) && !channels.is_empty() => {
            let message = format!(
                "the default channel {default:?} is none of this bundle's channels ({})",
                channels.join(", ")
            );
            let hint = "another bundle of the package must be in it, or the catalog is refused";
            findings.push(place(warning("CHAN-1", message), DEFAULT_CHANNEL).hint(hint));
        }
        None if channels.len() > 1 => {
            let message = "the bundle is in several channels and names no default";
            let hint = format!("add `{DEFAULT_CHANNEL}`");
            findings.push(place(warning("CHAN-3", message), CHANNELS).hint(hint));
        }
        _ => {}
    }
    let odd = text
        .split(',')
        .find(|channel| channel.trim() != *channel || channel.is_empty() || channel.contains(char::is_whitespace));
    if let Some(channel) = odd.filter(|_| !text.is_empty()) {
        let message =
            format!("channel {channel:?} has blanks around or in it, or is empty: the blanks become part of the name");
        findings.push(place(warning("CHAN-2", message), CHANNELS).hint("separate channels by commas alone"));
    }
    let package = bundle.package();
    if let Some(fault) = dns1123_label_problems(package)
        .first()
        .filter(|_| bundle.metadata.get(PACKAGE).is_some())
    {
        let message = format!("package {package:?} is no DNS label: {fault}");
        findings.push(place(warning("CHAN-4", message), PACKAGE).hint("use lower-case letters, digits and `-`"));
    }
    findings
}

fn name(csv: &Csv<'_>) -> Option<Checked> {
    let (_, suffix) = csv.name().split_once(".v")?;
    let (in_name, in_spec) = (
        Version::parse(suffix).ok()?,
        Version::parse(csv.text("/spec/version")).ok()?,
    );
    // Build metadata cannot stand in a name; a dash or a dot takes the place of its plus sign.
    let plain = in_spec.to_string().replace('+', "-");
    if in_name == in_spec || suffix == plain || in_spec.to_string().replace('+', ".") == suffix {
        return None;
    }
    let message = format!("the name says version {suffix}, `spec.version` says {in_spec}");
    Some(
        warning("NAME-1", message)
            .at(csv.object, "/spec/version")
            .hint("OLM orders upgrades by spec.version: let both say the same"),
    )
}

fn upgrades(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let name = csv.name();
    if !name.is_empty() && csv.text("/spec/replaces") == name {
        findings.push(
            warning("UPG-1", "the bundle replaces itself")
                .at(csv.object, "/spec/replaces")
                .hint("name the version before it"),
        );
    }
    if strings(csv.get("/spec"), "skips").any(|skipped| skipped == name) && !name.is_empty() {
        findings.push(
            warning("UPG-1", "the bundle skips itself")
                .at(csv.object, "/spec/skips")
                .hint("remove its own name"),
        );
    }
    let Some(range) = csv.annotation("olm.skipRange").filter(|range| !range.is_empty()) else {
        return findings;
    };
    let pointer = "/metadata/annotations/olm.skipRange";
    match VersionRange::parse(range) {
        Err(error) => {
            let message = format!("olm.skipRange is no range: {error}");
            findings.push(
                warning("UPG-2", message)
                    .at(csv.object, pointer)
                    .hint("write for example `>=1.0.0 <1.2.0`"),
            );
        }
        Ok(parsed) => {
            let version = Version::parse(csv.text("/spec/version")).ok();
            if let Some(version) = version.filter(|version| parsed.contains(version)) {
                let message = format!("olm.skipRange {range:?} holds the bundle's own version {version}");
                findings.push(
                    warning("UPG-3", message)
                        .at(csv.object, pointer)
                        .hint(format!("end the range with `<{version}`")),
                );
            }
        }
    }
    findings
}
