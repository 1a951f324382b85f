//! HUB: what OperatorHub.io wants of a ClusterServiceVersion.

use serde_json::Value;

use super::checked::Checked;
use super::context::{Context, Csv, field};
use super::csv::MIN_KUBE_VERSION_MISSING;
use super::{link, mail, removed_apis, standard};
use crate::object::Version;

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

/// True when the reference tool crashes in this validator: it looks at the first icon of an empty list.
pub fn crashes(csv: &Csv<'_>) -> bool {
    csv.get("/spec/icon").as_array().is_some_and(Vec::is_empty)
}

fn provider_maintainers_links(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    if csv.text("/spec/provider/name").trim().is_empty() {
        let hint = "say who provides the operator in `spec.provider.name`";
        findings.push(
            csv.error("HUB-1", "/spec/provider/name", "csv.Spec.Provider.Name not specified")
                .hint(hint),
        );
    }
    for (at, maintainer) in csv.list("/spec/maintainers").iter().enumerate() {
        let pointer = format!("/spec/maintainers/{at}");
        let email = field(maintainer, "email");
        if field(maintainer, "name").is_empty() || email.is_empty() {
            let detail = "csv.Spec.Maintainers elements should contain both name and email";
            findings.push(csv.error("HUB-2", &pointer, detail).hint("give both"));
        }
        if let Some(reason) = mail::fault(email).filter(|_| !email.is_empty()) {
            let detail = format!("csv.Spec.Maintainers email {email} is invalid: {reason}");
            let hint = "write one address, such as `team@example.com`";
            findings.push(csv.error("HUB-3", &format!("{pointer}/email"), detail).hint(hint));
        }
    }
    for (at, link) in csv.list("/spec/links").iter().enumerate() {
        let pointer = format!("/spec/links/{at}");
        let url = field(link, "url");
        if field(link, "name").is_empty() || url.is_empty() {
            let detail = "csv.Spec.Links elements should contain both name and url";
            findings.push(csv.error("HUB-4", &pointer, detail).hint("give both"));
        }
        if let Some(reason) = link::fault(url).filter(|_| !url.is_empty()) {
            let detail = format!("csv.Spec.Links url {url} is invalid: {reason}");
            let hint = "write the whole address with its scheme: `https://example.com/docs`";
            findings.push(csv.error("HUB-5", &format!("{pointer}/url"), detail).hint(hint));
        }
    }
    findings
}

fn version_icon_kubernetes(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    if Version::parse(csv.text("/spec/version")).map_or(true, |version| version == Version::default()) {
        let hint = "write the version that the name carries: `version: 1.2.3`";
        findings.push(
            csv.error("HUB-6", "/spec/version", "csv.Spec.Version must be set")
                .hint(hint),
        );
    }
    findings.extend(icon(csv));
    let pointer = "/spec/minKubeVersion";
    let minimum = csv.text(pointer);
    if minimum.trim().is_empty() {
        findings.push(
            csv.warning("HUB-11", pointer, MIN_KUBE_VERSION_MISSING)
                .hint("add for example `minKubeVersion: 1.25.0`"),
        );
    } else if Version::parse(minimum).is_err() {
        let detail = format!("csv.Spec.MinKubeVersion has an invalid value: {minimum}");
        findings.push(
            csv.error("HUB-11", pointer, detail)
                .hint("write three numbers, without a `v`: `minKubeVersion: 1.25.0`"),
        );
    }
    findings
}

fn icon(csv: &Csv<'_>) -> Vec<Checked> {
    let Some(icons) = csv.get("/spec/icon").as_array() else {
        let hint = "add `spec.icon` with `base64data` and `mediatype`";
        return vec![
            csv.warning("HUB-7", "/spec/icon", "csv.Spec.Icon not specified")
                .hint(hint),
        ];
    };
    let mut findings = Vec::new();
    if icons.len() != 1 {
        findings.push(
            csv.error("HUB-8", "/spec/icon", "csv.Spec.Icon should only have one element")
                .hint("keep one icon"),
        );
    }
    let Some(icon) = icons.first() else { return findings };
    let media_type = icon.get("mediatype").and_then(Value::as_str).unwrap_or_default();
    if media_type.is_empty() || field(icon, "base64data").is_empty() {
        let detail = "csv.Spec.Icon elements should contain both data and mediatype";
        let hint = "put the image into `base64data` and its type into `mediatype`, or leave `spec.icon` out";
        findings.push(csv.error("HUB-9", "/spec/icon/0", detail).hint(hint));
    }
    if !media_type.is_empty() && !MEDIA_TYPES.contains(&media_type) {
        let detail = format!("csv.Spec.Icon {media_type} does not have a valid mediatype");
        let hint = format!("use one of {}", MEDIA_TYPES.join(", "));
        findings.push(csv.error("HUB-10", "/spec/icon/0/mediatype", detail).hint(hint));
    }
    findings
}
