//! Checks of `spec.conversion`.

use serde_json::Value;

use super::finding::{BadValue, Findings};
use super::internal::{Conversion, text};
use crate::object::{dns1035_label_problems, dns1123_subdomain_problems};
use olmkit_go::url;

const FORM: &str = "; desired format: https://host[/path]";

/// Checks the conversion of a CRD.
pub(super) fn check(conversion: &Conversion, findings: &mut Findings) {
    match conversion.strategy.as_str() {
        "" => findings.required("spec.conversion.strategy", ""),
        "None" | "Webhook" => {}
        other => findings.not_supported("spec.conversion.strategy", other, &["None", "Webhook"]),
    }
    if conversion.strategy == "Webhook" {
        client_config(conversion.client_config, findings);
        review_versions(&conversion.review_versions, findings);
        return;
    }
    let problem = "should not be set when strategy is not set to Webhook";
    if conversion.client_config.is_some() {
        findings.forbidden("spec.conversion.webhookClientConfig", problem);
    }
    if !conversion.review_versions.is_empty() {
        findings.forbidden("spec.conversion.conversionReviewVersions", problem);
    }
}

fn client_config(config: Option<&Value>, findings: &mut Findings) {
    let path = "spec.conversion.webhookClientConfig";
    let Some(config) = config else {
        findings.required(path, "required when strategy is set to Webhook");
        return;
    };
    match (config.get("url").and_then(Value::as_str), config.get("service")) {
        (Some(url), None) => check_url(url, &format!("{path}.url"), findings),
        (None, Some(service)) => check_service(service, &format!("{path}.service"), findings),
        _ => findings.required(path, "exactly one of url or service is required"),
    }
}

fn check_url(text: &str, path: &str, findings: &mut Findings) {
    let url = match url::parse(text) {
        Ok(url) => url,
        Err(problem) => {
            findings.required(path, format!("url must be a valid URL: {problem}{FORM}"));
            return;
        }
    };
    if url.scheme != "https" {
        let problem = format!("'https' is the only allowed URL scheme{FORM}");
        findings.invalid(path, BadValue::text(&url.scheme), problem);
    }
    if url.host.is_empty() {
        findings.invalid(path, BadValue::text(""), format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        findings.invalid(
            path,
            BadValue::text(&user.to_string()),
            "user information is not permitted in the URL",
        );
    }
    if !url.fragment.is_empty() {
        findings.invalid(
            path,
            BadValue::text(&url.fragment),
            "fragments are not permitted in the URL",
        );
    }
    if !url.raw_query.is_empty() {
        findings.invalid(
            path,
            BadValue::text(&url.raw_query),
            "query parameters are not permitted in the URL",
        );
    }
}

fn check_service(service: &Value, path: &str, findings: &mut Findings) {
    // The API server hands name and namespace over in the wrong order, so each is reported under the other's field.
    if text(service, "namespace").is_empty() {
        findings.required(&format!("{path}.name"), "service name is required");
    }
    if text(service, "name").is_empty() {
        findings.required(&format!("{path}.namespace"), "service namespace is required");
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let problem = "port is not valid: must be between 1 and 65535, inclusive";
        findings.invalid(&format!("{path}.port"), BadValue::word(port), problem);
    }
    if let Some(url_path) = service.get("path").and_then(Value::as_str) {
        check_path(url_path, &format!("{path}.path"), findings);
    }
}

fn check_path(url_path: &str, path: &str, findings: &mut Findings) {
    let mut fault = |problem: String| findings.invalid(path, BadValue::text(url_path), problem);
    match url_path {
        "" | "/" => return,
        "//" => return fault("segment[0] may not be empty".to_owned()),
        _ => {}
    }
    if !url_path.starts_with('/') {
        fault("must start with a '/'".to_owned());
    }
    // As in the API server, the first character is removed regardless of its value.
    let mut rest = url_path.chars();
    rest.next();
    let rest = rest.as_str();
    for (at, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            fault(format!("segment[{at}] may not be empty"));
            continue;
        }
        for problem in dns1123_subdomain_problems(segment) {
            fault(format!("segment[{at}]: {problem}"));
        }
    }
}

fn review_versions(versions: &[String], findings: &mut Findings) {
    let path = "spec.conversion.conversionReviewVersions";
    if versions.is_empty() {
        findings.required(path, "");
        return;
    }
    for (at, version) in versions.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if versions.iter().take(at).any(|earlier| earlier == version) {
            findings.invalid(&path, BadValue::text(version), "duplicate version");
            continue;
        }
        for problem in dns1035_label_problems(version) {
            findings.invalid(&path, BadValue::text(version), problem);
        }
    }
    if !versions
        .iter()
        .any(|version| matches!(version.as_str(), "v1" | "v1beta1"))
    {
        findings.invalid(
            path,
            BadValue::texts(versions),
            "must include at least one of v1, v1beta1",
        );
    }
}
