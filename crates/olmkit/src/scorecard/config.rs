//! Location and content of the configuration.

use olmkit_scorecard::{API_VERSION, Configuration, Stage, TestConfiguration};

use super::builtin::NAMES;
use crate::bundle::Metadata;
use crate::diagnostics::json_path;
use crate::yaml;
use olmkit_go::filepath;
use olmkit_go::structs::decode::decode;

/// The configuration's directory in a bundle, unless an annotation names another one.
pub const CONFIG_DIRECTORY: &str = "tests/scorecard";

/// The name of its file.
pub const CONFIG_FILE: &str = "config.yaml";

const MEDIA_TYPE: &str = "operators.operatorframework.io.test.mediatype.v1";
const DIRECTORY: &str = "operators.operatorframework.io.test.config.v1";

/// A configuration that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ConfigError {
    /// operator-sdk's message.
    pub message: String,
    /// The line and the column, counted from 1.
    pub position: Option<(u32, u32)>,
    /// The field.
    pub path: Option<String>,
}

/// The configuration's path, relative to the bundle. The annotations name its directory, if they have scorecard's media type.
#[must_use]
pub fn config_path(metadata: &Metadata) -> String {
    let directory = match metadata.get(MEDIA_TYPE) {
        Some("scorecard+v1") => metadata.get(DIRECTORY).unwrap_or(CONFIG_DIRECTORY),
        _ => CONFIG_DIRECTORY,
    };
    filepath::join(directory, CONFIG_FILE)
}

/// Reads a configuration.
///
/// # Errors
/// When it is not YAML, or a field has another type.
pub fn parse(bytes: &[u8]) -> Result<Configuration, ConfigError> {
    let in_yaml = |error: yaml::Error| ConfigError {
        message: format!("error converting YAML to JSON: {error}"),
        position: error.position().map(|position| (position.line, position.column)),
        path: None,
    };
    let node = yaml::parse(bytes).map_err(in_yaml)?;
    let value = node.to_json().map_err(in_yaml)?;
    let decoded = decode(&value, "scorecard.Configuration", true).map_err(|error| ConfigError {
        message: format!("error unmarshaling JSON: while decoding JSON: {}", error.message),
        position: node
            .pointer(&error.pointer)
            .map(|node| (node.start.line, node.start.column)),
        path: Some(json_path(&error.pointer)),
    })?;
    serde_json::from_value(decoded).map_err(|error| ConfigError {
        message: error.to_string(),
        position: None,
        path: None,
    })
}

/// The six built-in tests, as a project of operator-sdk configures them.
#[must_use]
pub fn default_configuration() -> Configuration {
    let test = |name: &&str| TestConfiguration {
        image: "quay.io/operator-framework/scorecard-test:v1.42.3".to_owned(),
        entrypoint: vec!["scorecard-test".to_owned(), (*name).to_owned()],
        labels: [
            (
                "suite",
                if name.starts_with("basic") { "basic" } else { "olm" }.to_owned(),
            ),
            ("test", format!("{name}-test")),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into(),
        ..TestConfiguration::default()
    };
    Configuration {
        kind: "Configuration".to_owned(),
        api_version: API_VERSION.to_owned(),
        stages: vec![Stage {
            parallel: true,
            tests: NAMES.iter().map(test).collect(),
        }],
        ..Configuration::default()
    }
}
