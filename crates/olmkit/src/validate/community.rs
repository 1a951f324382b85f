//! COM: the deprecated validator `community`, which checks bundles for APIs that Kubernetes 1.22 (OpenShift 4.9)
//! removed.

use std::path::Path;

use serde_json::Value;

use super::checked::Checked;
use super::context::{Context, Csv};
use super::removed_apis::{list, removed_in_1_22};
use crate::diagnostics::{Origin, Severity, define_rules};
use crate::limits;
use crate::object::Version;

define_rules! {
    COM_1 = {
        id: "COM-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("community"),
        summary: "A bundle that uses APIs removed in Kubernetes 1.22 must limit itself to OpenShift 4.8 or earlier in `olm.properties`.",
        why: "OpenShift 4.9 is Kubernetes 1.22, where the operator cannot run. The property blocks the cluster upgrade.",
        bad: "olm.properties: '[]'",
        good: "olm.properties: '[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": \"4.8\"}]'",
        since: "0.1.0",
    }
    COM_2 = {
        id: "COM-2",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("community"),
        summary: "The Dockerfile of such a bundle must have the label com.redhat.openshift.versions with a range that ends below 4.9.",
        why: "The label decides which OpenShift catalogs include the bundle.",
        bad: "LABEL com.redhat.openshift.versions=v4.6",
        good: "LABEL com.redhat.openshift.versions=v4.6-v4.8",
        since: "0.1.0",
    }
}

const GUIDE: &str = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22";
const REMOVED: &str = "This bundle is using APIs which were deprecated and removed in v1.22. More info: \
                       https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22";
const LABEL: &str = "com.redhat.openshift.versions";
const INDEX_PATH: &str = "index-path";
const PROPERTY: &str = "olm.maxOpenShiftVersion";
const ANNOTATION: &str = "/metadata/annotations/olm.properties";

/// Runs the validator.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let found = removed_in_1_22(context.bundle);
    if found.is_empty() {
        return Vec::new();
    }
    let apis = list(&found);
    let mut findings: Vec<Checked> = max_openshift_version(&csv, &apis).into_iter().collect();
    match context
        .options
        .values
        .get(INDEX_PATH)
        .map(String::as_str)
        .unwrap_or_default()
    {
        "" => {
            // operator-sdk copies the errors to the warnings.
            findings.retain(|checked| checked.finding.severity == Severity::Error);
            let copies: Vec<Checked> = findings
                .iter()
                .map(|checked| csv.warning(&COM_1, ANNOTATION, &checked.finding.message))
                .collect();
            findings.extend(copies);
            let detail = format!(
                "please, inform the path of its index image file via the the optional key values and the key {INDEX_PATH} to allow this \
                 validator check the labels configuration or migrate the API(s) for {apis}. (e.g. {INDEX_PATH}=./mypath/bundle.Dockerfile). \
                 {REMOVED} "
            );
            findings.push(csv.warning(&COM_2, "", detail));
        }
        path => findings.extend(index_file(&csv, path, &apis)),
    }
    findings
}

fn max_openshift_version(csv: &Csv<'_>, apis: &str) -> Option<Checked> {
    let error = |detail: String| Some(csv.error(&COM_1, ANNOTATION, detail));
    let text = csv.annotation("olm.properties").unwrap_or_default();
    if text.is_empty() {
        return error(format!(
            "csv.Annotations not specified {PROPERTY} for an OCP version < 4.9. This annotation is required to prevent the user from \
             upgrading their OCP cluster before they have installed a version of their operator which is compatible with 4.9. {REMOVED} \
             which are no longer supported on 4.9. Migrate the API(s) for {apis} or use the annotation"
        ));
    }
    let Some(properties) = properties(text) else {
        return error(format!(
            "csv.Annotations has an invalid value specified for olm.properties. Please, check the value  ({text}) and ensure that it is an \
             array such as: \"olm.properties\": '[{{\"type\": \"key name\", \"value\": \"key value\"}}]'"
        ));
    };
    let Some((_, value)) = properties.iter().find(|(kind, _)| kind == PROPERTY) else {
        return error(format!(
            "csv.Annotations.olm.properties with the key `{PROPERTY}` and a value with an OCP version which is < 4.9 is required for any \
             operator bundle that is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}. Migrate the API(s) for \
             {apis} or use the annotation"
        ));
    };
    let version = match Version::parse_tolerant(value) {
        Ok(version) => version,
        Err(reason) => {
            return error(format!(
                "csv.Annotations.olm.properties has an invalid value. Unable to parse ({value}) using semver : {reason}"
            ));
        }
    };
    let truncated = Version::new(version.major, version.minor, 0);
    if version != truncated {
        let detail = format!(
            "csv.Annotations.olm.properties has an invalid value. {PROPERTY} must specify only major.minor versions, {version} will be \
             truncated to {truncated}"
        );
        return Some(csv.warning(&COM_1, ANNOTATION, detail));
    }
    if version >= Version::new(4, 9, 0) {
        return error(format!(
            "csv.Annotations.olm.properties with the key and value for {PROPERTY} has the OCP version value {value} which is >= of 4.9. \
             {REMOVED}. Migrate the API(s) for {apis} or inform in this property an OCP version which is < 4.9"
        ));
    }
    None
}

/// The (type, value) pairs of the annotation. `None` unless it is a JSON list of them.
fn properties(text: &str) -> Option<Vec<(String, String)>> {
    let list: Value = serde_json::from_str(text).ok()?;
    if list.is_null() {
        return Some(Vec::new());
    }
    let mut out = Vec::new();
    for entry in list.as_array()? {
        if entry.is_null() {
            continue;
        }
        let mut pair = (String::new(), String::new());
        for (key, value) in entry.as_object()? {
            // Go takes the keys in any case.
            let place = match key.to_ascii_lowercase().as_str() {
                "type" => &mut pair.0,
                "value" => &mut pair.1,
                _ => continue,
            };
            match value {
                Value::Null => {}
                Value::String(text) => place.clone_from(text),
                _ => return None,
            }
        }
        out.push(pair);
    }
    Some(out)
}

fn index_file(csv: &Csv<'_>, path: &str, apis: &str) -> Option<Checked> {
    let error = |detail: String| Some(csv.error(&COM_2, "", detail));
    let content = match read(path) {
        Ok(content) => content,
        Err(detail) => return error(detail),
    };
    if !content.contains(LABEL) {
        return error(format!(
            "this bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}. Migrate the APIs for {apis} or \
             provide compatible version(s) via the labels. (e.g. LABEL {LABEL}='4.6-4.8')"
        ));
    }
    let line = content.split('\n').find(|line| line.contains(LABEL))?;
    if !line.contains('=') {
        return error(format!("invalid syntax ({line}) for ({LABEL})"));
    }
    let parts: Vec<&str> = line.split('=').collect();
    let unquoted = |text: &str| text.replace(['\'', '"', 'v'], "");
    let unparsable = |version: &str| error(format!("unable to parse the value ({version}) on ({LABEL})"));
    if let Some(exact) = parts.get(2).filter(|text| !text.is_empty()) {
        let version = unquoted(exact);
        let Ok(parsed) = Version::parse_tolerant(&version) else {
            return unparsable(&version);
        };
        if parsed >= Version::new(4, 9, 0) {
            return error(format!(
                "this bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}. Migrate the API(s) for {apis} or \
                 provide compatible version(s) by using the {LABEL} annotation in `metadata/annotations.yaml` to ensure that the index image \
                 will be geneared with its label. (e.g. LABEL {LABEL}='4.6-4.8')"
            ));
        }
        return None;
    }
    let range = unquoted(parts.get(1).copied().unwrap_or_default());
    if range.len() <= 1 {
        return error(format!("unable to get the range informed on {LABEL}"));
    }
    let Some(upper) = range.split('-').nth(1) else {
        return error(format!(
            "this bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE} The {range} allows to distribute it on \
             >= 4.9. Migrate the API(s) for {apis} or provide compatible version(s) by using the {LABEL} annotation in \
             `metadata/annotations.yaml` to ensure that the index image will be generated with its label. (e.g. LABEL {LABEL}='4.6-4.8')"
        ));
    };
    let Ok(parsed) = Version::parse_tolerant(upper) else {
        return unparsable(upper);
    };
    if parsed >= Version::new(4, 9, 0) {
        return error(format!(
            "this bundle is using APIs which were deprecated and removed in v1.22. More info: {GUIDE}. Upgrade the APIs from for {apis} or \
             provide compatible distribution version(s) by using the {LABEL} annotation in `metadata/annotations.yaml` to ensure that the \
             index image will be generated with its label. (e.g. LABEL {LABEL}='4.6-4.8')"
        ));
    }
    None
}

fn read(path: &str) -> Result<String, String> {
    let advice = format!(
        "via the the optional key values and the key {INDEX_PATH}. (e.g. {INDEX_PATH}=./mypath/bundle.Dockerfile)"
    );
    let metadata = std::fs::metadata(Path::new(path)).map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file or directory".to_string(),
            std::io::ErrorKind::NotADirectory => "not a directory".to_string(),
            std::io::ErrorKind::PermissionDenied => "permission denied".to_string(),
            _ => error.to_string(),
        };
        format!(
            "the index image in the path ({path}) was not found. Please, inform the path of the bundle operator index image {advice}. \
             Error : stat {path}: {reason}"
        )
    })?;
    if metadata.is_dir() {
        return Err(format!(
            "the index image in the path ({path}) is not file. Please, inform the path of its index image {advice}. The value informed is a \
             diretory and not a file"
        ));
    }
    let bytes = limits::read_named(path.as_ref(), &limits::SETTINGS_FILE)
        .map_err(|error| format!("unable to read the index image in the path ({path}). Error : {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
