//! HUB: OperatorHub.io's requirements for a ClusterServiceVersion.

use serde_json::Value;

use super::checked::Checked;
use super::context::{Context, Csv, field};
use super::csv::without_minimum;
use super::{removed_apis, standard};
use crate::diagnostics::{Origin, Severity, define_rules};
use crate::object::Version;
use olmkit_go::{mail, url as go_url};

define_rules! {
    HUB_0 = {
        id: "HUB-0",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "The validator `operatorhub` should not be selected: it is deprecated.",
        why: "Its checks were split into other validators, and it will be removed.",
        bad: "--select-optional name=operatorhub",
        good: "--select-optional suite=operatorframework",
        since: "0.1.0",
    }
    HUB_1 = {
        id: "HUB-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "The provider must have a name.",
        why: "OperatorHub.io shows the operator's provider.",
        bad: "provider: {}",
        good: "provider: {name: Example}",
        since: "0.1.0",
    }
    HUB_2 = {
        id: "HUB-2",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "Each maintainer must have a name and an email address.",
        why: "OperatorHub.io lists the maintainers as contacts.",
        bad: "- name: Ann",
        good: "- name: Ann\n  email: ann@example.com",
        since: "0.1.0",
    }
    HUB_3 = {
        id: "HUB-3",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "Each email must be a single, valid address.",
        why: "Mail to anything else is not delivered.",
        bad: "email: ann",
        good: "email: ann@example.com",
        since: "0.1.0",
    }
    HUB_4 = {
        id: "HUB-4",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "Each link must have a name and a URL.",
        why: "OperatorHub.io shows a link by its name, and needs a target for it.",
        bad: "- name: Docs",
        good: "- name: Docs\n  url: https://example.com",
        since: "0.1.0",
    }
    HUB_5 = {
        id: "HUB-5",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "Each link must be a complete URL.",
        why: "A URL without a scheme is read as a path on the page that shows it.",
        bad: "url: www.example.com",
        good: "url: https://www.example.com",
        since: "0.1.0",
    }
    HUB_6 = {
        id: "HUB-6",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "`spec.version` must be set.",
        why: "OperatorHub.io sorts an operator's versions by it.",
        bad: "version: 0.0.0",
        good: "version: 1.0.0",
        since: "0.1.0",
    }
    HUB_7 = {
        id: "HUB-7",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "There should be an icon.",
        why: "OperatorHub.io and consoles show a placeholder otherwise.",
        bad: "spec: {}",
        good: "icon:\n- base64data: …\n  mediatype: image/png",
        since: "0.1.0",
    }
    HUB_8 = {
        id: "HUB-8",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "There must be one icon.",
        why: "Only one can be shown.",
        bad: "two entries",
        good: "one entry",
        since: "0.1.0",
    }
    HUB_9 = {
        id: "HUB-9",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "The icon must have data and a media type.",
        why: "An icon cannot be shown without its data and type.",
        bad: "- mediatype: image/png",
        good: "- mediatype: image/png\n  base64data: …",
        since: "0.1.0",
    }
    HUB_10 = {
        id: "HUB-10",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "The media type must be one of image/gif, image/jpeg, image/png, image/svg+xml.",
        why: "Browsers show these formats only.",
        bad: "mediatype: image/PNG",
        good: "mediatype: image/png",
        since: "0.1.0",
    }
    HUB_11 = {
        id: "HUB-11",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "`minKubeVersion` must be set to a version with three numbers.",
        why: "Users see which clusters can run the operator before they install it.",
        bad: "minKubeVersion: v1.25",
        good: "minKubeVersion: 1.25.0",
        since: "0.1.0",
    }
    HUB_13 = {
        id: "HUB-13",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("operatorhub"),
        summary: "The icon list must not be empty. operator-sdk crashes on it.",
        why: "operator-sdk reads the first element of an empty list and stops with a panic.",
        bad: "icon: []",
        good: "leave `icon` out",
        since: "0.1.0",
    }
}

const MEDIA_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/svg+xml"];

/// The validator `operatorhubv2`.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = provider_maintainers_links(&csv);
    findings.extend(version_icon_kubernetes(&csv));
    findings.extend(removed_apis::check(context));
    findings
}

/// The deprecated validator `operatorhub`, which checks capabilities and categories as well.
pub fn check_deprecated(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = provider_maintainers_links(&csv);
    findings.extend(standard::capabilities(context));
    findings.extend(standard::categories(context));
    findings.extend(version_icon_kubernetes(&csv));
    findings.extend(removed_apis::check(context));
    findings
}

/// True if operator-sdk crashes in this validator: it reads the first icon of an empty list.
pub fn crashes(csv: &Csv<'_>) -> bool {
    csv.get("/spec/icon").as_array().is_some_and(Vec::is_empty)
}

fn provider_maintainers_links(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    if csv.text("/spec/provider/name").trim().is_empty() {
        let hint = "set `spec.provider.name` to the provider of the operator";
        findings.push(
            csv.error(&HUB_1, "/spec/provider/name", "csv.Spec.Provider.Name not specified")
                .hint(hint),
        );
    }
    for (at, maintainer) in csv.list("/spec/maintainers").iter().enumerate() {
        let pointer = format!("/spec/maintainers/{at}");
        let email = field(maintainer, "email");
        if field(maintainer, "name").is_empty() || email.is_empty() {
            let detail = "csv.Spec.Maintainers elements should contain both name and email";
            findings.push(csv.error(&HUB_2, &pointer, detail).hint("give both"));
        }
        if let Some(reason) = mail::parse_address(email).err().filter(|_| !email.is_empty()) {
            let detail = format!("csv.Spec.Maintainers email {email} is invalid: {reason}");
            let hint = "write one address, such as `team@example.com`";
            findings.push(csv.error(&HUB_3, &format!("{pointer}/email"), detail).hint(hint));
        }
    }
    for (at, link) in csv.list("/spec/links").iter().enumerate() {
        let pointer = format!("/spec/links/{at}");
        let url = field(link, "url");
        if field(link, "name").is_empty() || url.is_empty() {
            let detail = "csv.Spec.Links elements should contain both name and url";
            findings.push(csv.error(&HUB_4, &pointer, detail).hint("give both"));
        }
        if let Some(reason) = go_url::parse_request_uri(url).err().filter(|_| !url.is_empty()) {
            let detail = format!("csv.Spec.Links url {url} is invalid: {reason}");
            let hint = "use a complete URL with its scheme: `https://example.com/docs`";
            findings.push(csv.error(&HUB_5, &format!("{pointer}/url"), detail).hint(hint));
        }
    }
    findings
}

fn version_icon_kubernetes(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    if Version::parse(csv.text("/spec/version")).map_or(true, |version| version == Version::default()) {
        let hint = "use the version in the name: `version: 1.2.3`";
        findings.push(
            csv.error(&HUB_6, "/spec/version", "csv.Spec.Version must be set")
                .hint(hint),
        );
    }
    findings.extend(icon(csv));
    let pointer = "/spec/minKubeVersion";
    let minimum = csv.text(pointer);
    if minimum.trim().is_empty() {
        findings.push(without_minimum(csv, &HUB_11));
    } else if Version::parse(minimum).is_err() {
        let detail = format!("csv.Spec.MinKubeVersion has an invalid value: {minimum}");
        findings.push(
            csv.error(&HUB_11, pointer, detail)
                .hint("write three numbers, without a `v`: `minKubeVersion: 1.25.0`"),
        );
    }
    findings
}

fn icon(csv: &Csv<'_>) -> Vec<Checked> {
    let Some(icons) = csv.get("/spec/icon").as_array() else {
        let hint = "add `spec.icon` with `base64data` and `mediatype`";
        return vec![
            csv.warning(&HUB_7, "/spec/icon", "csv.Spec.Icon not specified")
                .hint(hint),
        ];
    };
    let mut findings = Vec::new();
    if icons.len() != 1 {
        findings.push(
            csv.error(&HUB_8, "/spec/icon", "csv.Spec.Icon should only have one element")
                .hint("keep one icon"),
        );
    }
    let Some(icon) = icons.first() else { return findings };
    let media_type = icon.get("mediatype").and_then(Value::as_str).unwrap_or_default();
    if media_type.is_empty() || field(icon, "base64data").is_empty() {
        let detail = "csv.Spec.Icon elements should contain both data and mediatype";
        let hint = "put the image into `base64data` and its type into `mediatype`, or leave `spec.icon` out";
        findings.push(csv.error(&HUB_9, "/spec/icon/0", detail).hint(hint));
    }
    if !media_type.is_empty() && !MEDIA_TYPES.contains(&media_type) {
        let detail = format!("csv.Spec.Icon {media_type} does not have a valid mediatype");
        let hint = format!("use one of {}", MEDIA_TYPES.join(", "));
        findings.push(csv.error(&HUB_10, "/spec/icon/0/mediatype", detail).hint(hint));
    }
    findings
}
