//! Checks the configuration of a ClusterExtension (`spec.config.inline`) as OLM v1 does: against a JSON Schema that
//! depends on the install modes, with the messages of its Go library.

use serde_json::Value;

use super::config_types::{Failure, Failures, Kind};
use super::modes::{InstallMode, InstallModes};
use super::provider::Gates;
use olmkit_go::structs::restore::restore;

/// A configuration that a bundle accepts.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The namespace to watch.
    pub watch_namespace: Option<String>,
    /// Changes to the Deployments.
    pub deployment: Option<Value>,
}

/// Why a bundle does not accept a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("terminal error: invalid {0}")]
#[non_exhaustive]
pub struct ConfigError(String);

/// The longest name of a namespace.
const LONGEST: usize = 63;
const PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Fields of `deploymentConfig`, and the Go types of their values.
const DEPLOYMENT: [(&str, &str); 9] = [
    ("affinity", "Affinity"),
    ("annotations", "{}string"),
    ("env", "[]EnvVar"),
    ("envFrom", "[]EnvFromSource"),
    ("nodeSelector", "{}string"),
    ("resources", "ResourceRequirements"),
    ("tolerations", "[]Toleration"),
    ("volumeMounts", "[]VolumeMount"),
    ("volumes", "[]Volume"),
];

impl Config {
    /// Checks a configuration. Null means none.
    ///
    /// # Errors
    /// The bundle does not accept it.
    pub fn check(config: &Value, modes: &InstallModes, namespace: &str, gates: Gates) -> Result<Self, ConfigError> {
        let empty = Value::Object(serde_json::Map::new());
        let config = if config.is_null() { &empty } else { config };
        let mut failures = Failures::default();
        match config {
            Value::Object(fields) => {
                let configurable = modes.is_watch_configurable();
                let required = configurable && !modes.has(InstallMode::AllNamespaces);
                if required && !fields.contains_key("watchNamespace") {
                    failures.add(Failure::new(Kind::Required(vec!["watchNamespace".into()]), ""));
                }
                let mut unknown = Vec::new();
                for (key, value) in fields {
                    match key.as_str() {
                        "watchNamespace" if configurable => {
                            failures.extend(watch_namespace(value, modes, required, namespace));
                        }
                        "deploymentConfig" if gates.deployment_config => failures.extend(deployment(value)),
                        _ => unknown.push(key.clone()),
                    }
                }
                if !unknown.is_empty() {
                    failures.add(Failure::new(Kind::Additional(unknown), ""));
                }
            }
            other => failures.add(Failure::type_of(other, "object", "")),
        }
        if let Some(text) = failures.into_text() {
            return Err(ConfigError(format!(
                "ClusterExtension configuration: invalid configuration: {text}"
            )));
        }
        let deployment = match config.get("deploymentConfig") {
            Some(Value::Object(fields)) => Some(typed(fields)?),
            _ => None,
        };
        Ok(Self {
            watch_namespace: config.get("watchNamespace").and_then(Value::as_str).map(str::to_owned),
            deployment,
        })
    }
}

fn watch_namespace(value: &Value, modes: &InstallModes, required: bool, namespace: &str) -> Option<Failure> {
    let path = "/watchNamespace";
    let failure = named_namespace(value, modes, namespace, path);
    if required {
        return failure;
    }
    if value.is_null() {
        return None;
    }
    let not_null = Failure::type_of(value, "null", path);
    failure.map(|failure| Failure::new(Kind::AnyOf, path).because(vec![not_null, failure]))
}

fn named_namespace(value: &Value, modes: &InstallModes, namespace: &str, path: &str) -> Option<Failure> {
    let Value::String(name) = value else {
        return Some(Failure::type_of(value, "string", path));
    };
    let quoted = olmkit_go::strconv::quote(name);
    let own = olmkit_go::strconv::quote(namespace);
    let (only_own, only_single) = (
        !modes.has(InstallMode::SingleNamespace),
        !modes.has(InstallMode::OwnNamespace),
    );
    let format = if only_own && name != namespace {
        Some((
            "ownNamespaceInstallMode",
            format!(
                "invalid value {quoted}: must be {own} (the namespace where the operator is installed) because this operator \
                 only supports OwnNamespace install mode"
            ),
        ))
    } else if only_single && name == namespace {
        Some((
            "singleNamespaceInstallMode",
            format!(
                "invalid value {quoted}: must be different from {own} (the install namespace) because this operator uses \
                 SingleNamespace install mode to watch a different namespace"
            ),
        ))
    } else {
        None
    };
    if let Some((format, reason)) = format {
        let kind = Kind::Format {
            got: name.clone(),
            format,
            reason,
        };
        return Some(Failure::new(kind, path));
    }
    let mut failures = Failures::default();
    let length = name.chars().count();
    if length < 1 {
        failures.add(Failure::new(Kind::MinLength(1, length), path));
    }
    if length > LONGEST {
        failures.add(Failure::new(Kind::MaxLength(LONGEST, length), path));
    }
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let sound = name.bytes().all(|byte| inner(byte) || byte == b'-')
        && name.bytes().next().is_some_and(inner)
        && name.bytes().last().is_some_and(inner);
    if !sound {
        failures.add(Failure::new(Kind::Pattern(PATTERN), path));
    }
    failures.into_one(path)
}

fn deployment(value: &Value) -> Option<Failure> {
    let path = "/deploymentConfig";
    let Value::Object(fields) = value else {
        return Some(Failure::type_of(value, "object", path));
    };
    let mut failures = Failures::default();
    let mut unknown = Vec::new();
    for (key, value) in fields {
        match DEPLOYMENT.iter().find(|(name, _)| name == key) {
            Some((_, kind)) => failures.extend(super::config_types::check(value, kind, &format!("{path}/{key}"))),
            None => unknown.push(key.clone()),
        }
    }
    if !unknown.is_empty() {
        failures.add(Failure::new(Kind::Additional(unknown), path));
    }
    failures.into_one(path)
}

/// The Deployments' configuration with the fields of the Go types.
fn typed(fields: &serde_json::Map<String, Value>) -> Result<Value, ConfigError> {
    let mut typed = serde_json::Map::new();
    for (key, kind) in DEPLOYMENT {
        let Some(value) = fields.get(key) else { continue };
        let one = |value: &Value, kind: &str| {
            restore(value, kind).map_err(|error| {
                ConfigError(format!(
                    "deploymentConfig: failed to unmarshal deploymentConfig: {}",
                    error.message
                ))
            })
        };
        let value = match (kind.strip_prefix("[]"), value) {
            (Some(kind), Value::Array(items)) => {
                let items: Result<Vec<Value>, ConfigError> = items.iter().map(|item| one(item, kind)).collect();
                Value::Array(items?)
            }
            _ => one(value, kind)?,
        };
        typed.insert(key.to_owned(), value);
    }
    Ok(Value::Object(typed))
}
