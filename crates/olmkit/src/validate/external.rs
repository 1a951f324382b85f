//! External validators: programs that get the bundle's directory and print their findings as JSON.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::checked::Checked;
use crate::diagnostics::{Finding, Origin, Severity, define_rules};
use crate::process::{Environment, Launcher, Run};

define_rules! {
    EXT_1 = {
        id: "EXT-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("external"),
        summary: "An external validator must run and report nothing.",
        why: "`--alpha-select-external` runs your own programs. Their findings become part of the result.",
        bad: "--alpha-select-external=./validator   # it prints an error, or no JSON",
        good: "exit 0 and print {\"Name\": \"demo\", \"Errors\": null, \"Warnings\": null}",
        since: "0.1.0",
    }
}

/// A validator gets the settings of clients of clusters, container tools and proxies, and no tokens of the caller.
const ENVIRONMENT: Environment = Environment::Only(&[
    "ALL_PROXY",
    "CONTAINER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBECONFIG",
    "NO_PROXY",
    "REGISTRY_AUTH_FILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "VALIDATOR_*",
    "all_proxy",
    "https_proxy",
    "http_proxy",
    "no_proxy",
]);

/// Runs one program.
///
/// # Errors
/// When it cannot be run, fails, or prints something else than findings.
pub fn run(launcher: &Launcher, program: &Path, directory: &Path) -> Result<Vec<Checked>, String> {
    let run = Run {
        shows_errors: true,
        ..Run::new(program.as_os_str(), ENVIRONMENT).arguments([directory])
    };
    let ended = launcher.run(run).map_err(|error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::FileTooLarge => error.to_string(),
        _ => start_error(program, &error),
    })?;
    if !ended.status.success() {
        return Err(match ended.status.code() {
            Some(code) => format!("exit status {code}"),
            None => ended.status.to_string(),
        });
    }
    let mut values = serde_json::Deserializer::from_slice(&ended.output).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => read(&value),
        Some(Err(error)) => Err(format!("cannot read what {} printed: {error}", program.display())),
        None => Err("EOF".to_string()),
    }
}

fn start_error(program: &Path, error: &std::io::Error) -> String {
    let reason = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_string(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_string(),
        _ => error.to_string(),
    };
    format!("fork/exec {}: {reason}", program.display())
}

/// Reads `{Name, Errors, Warnings}`. Keys in any case, no others.
fn read(value: &Value) -> Result<Vec<Checked>, String> {
    let mut out = Vec::new();
    let entries = match value {
        Value::Null => return Ok(out),
        Value::Object(entries) => entries,
        other => {
            let kind = olmkit_go::json::kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type errors.ManifestResult"
            ));
        }
    };
    let (mut errors, mut warnings) = (&Value::Null, &Value::Null);
    for (key, value) in entries {
        match key.to_ascii_lowercase().as_str() {
            "name" => {}
            "errors" => errors = value,
            "warnings" => warnings = value,
            _ => return Err(format!("json: unknown field {key:?}")),
        }
    }
    // Warnings are printed first.
    for (list, severity) in [(warnings, Severity::Warning), (errors, Severity::Error)] {
        for entry in list.as_array().map(Vec::as_slice).unwrap_or_default() {
            out.push(finding(entry, severity)?);
        }
    }
    Ok(out)
}

fn finding(entry: &Value, severity: Severity) -> Result<Checked, String> {
    let (mut level, mut field, mut value, mut detail) = (String::new(), String::new(), None, String::new());
    for (key, item) in entry.as_object().into_iter().flatten() {
        let text = || item.as_str().unwrap_or_default().to_string();
        match key.to_ascii_lowercase().as_str() {
            "type" => {}
            "level" => level = text(),
            "field" => field = text(),
            "badvalue" if item.is_null() => {}
            "badvalue" => value = Some(olmkit_go::fmt::v(item)),
            "detail" => detail = text(),
            _ => return Err(format!("json: unknown field {key:?}")),
        }
    }
    let subject = match (field.is_empty(), value) {
        (false, Some(value)) => format!("Field {field}, Value {value}"),
        (false, None) => format!("Field {field}"),
        (true, Some(value)) => format!("Value {value}"),
        (true, None) => String::new(),
    };
    let tail = if detail.is_empty() {
        subject.clone()
    } else {
        format!("{subject}: {detail}")
    };
    let reference = if tail.is_empty() {
        "ErrMessageMissing".to_string()
    } else {
        format!("{level}: {tail}")
    };
    let message = if detail.is_empty() { reference.clone() } else { detail };
    Ok(Checked {
        finding: Finding::new(&EXT_1, severity, message),
        reference: Some(reference),
        on_request: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_strictly() {
        let good = serde_json::json!({"Name": "x", "Errors": [{"Level": "Error", "Detail": "bad", "Field": "f"}], "warnings": null});
        let findings = read(&good).expect("findings");
        assert_eq!(findings[0].reference.as_deref(), Some("Error: Field f: bad"));
        assert!(read(&serde_json::json!({"Other": 1})).is_err());
        assert!(read(&serde_json::json!({"Errors": [{"Line": 1}]})).is_err());
    }
}
