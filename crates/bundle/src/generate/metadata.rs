//! `metadata/annotations.yaml` and `bundle.Dockerfile`. Both contain the same values: annotations of a directory,
//! labels of an image.

use std::fmt::Write as _;

/// The values of both files.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// The bundle directory as given, for the paths of `COPY`.
    pub directory: String,
    /// Package name.
    pub package: String,
    /// Channels, joined with commas as they were given.
    pub channels: String,
    /// Default channel. Empty for none.
    pub default_channel: String,
    /// The tool that made the bundle.
    pub builder: String,
    /// The project's layout. operator-sdk also writes an empty one.
    pub layout: Option<String>,
    /// True if the bundle has a scorecard configuration.
    pub scorecard: bool,
    /// Annotations that people added. Kept in strict mode.
    pub own: Vec<(String, String)>,
}

const BUNDLE: &str = "operators.operatorframework.io.bundle";
const METRICS: &str = "operators.operatorframework.io.metrics";
const TEST: &str = "operators.operatorframework.io.test";

impl Metadata {
    /// Keys and values of the bundle format, in the order of the files.
    #[must_use]
    pub fn core(&self) -> Vec<(String, String)> {
        let mut values = vec![
            (format!("{BUNDLE}.mediatype.v1"), "registry+v1".to_owned()),
            (format!("{BUNDLE}.manifests.v1"), "manifests/".to_owned()),
            (format!("{BUNDLE}.metadata.v1"), "metadata/".to_owned()),
            (format!("{BUNDLE}.package.v1"), self.package.clone()),
            (format!("{BUNDLE}.channels.v1"), self.channels.clone()),
        ];
        if !self.default_channel.is_empty() {
            values.push((format!("{BUNDLE}.channel.default.v1"), self.default_channel.clone()));
        }
        values.extend([
            (format!("{METRICS}.builder"), self.builder.clone()),
            (format!("{METRICS}.mediatype.v1"), "metrics+v1".to_owned()),
        ]);
        if let Some(layout) = &self.layout {
            values.push((format!("{METRICS}.project_layout"), layout.clone()));
        }
        values
    }

    /// Keys and values for scorecard. Empty without a configuration.
    #[must_use]
    pub fn test(&self) -> Vec<(String, String)> {
        if !self.scorecard {
            return Vec::new();
        }
        vec![
            (format!("{TEST}.mediatype.v1"), "scorecard+v1".to_owned()),
            (format!("{TEST}.config.v1"), "tests/scorecard/".to_owned()),
        ]
    }

    /// Returns true if a key is always written.
    #[must_use]
    pub fn is_known(key: &str) -> bool {
        [BUNDLE, METRICS, TEST].iter().any(|prefix| key.starts_with(prefix))
    }

    /// The content of `metadata/annotations.yaml`.
    #[must_use]
    pub fn annotations(&self) -> String {
        let mut text = String::from("annotations:\n  # Core bundle annotations.\n");
        for (key, value) in self.core() {
            // The values are written unquoted; YAML readers treat all of them as strings. An equals sign in a layout
            // becomes a colon, because of a bug in operator-sdk's template.
            let _ = writeln!(text, "  {key}: {}", value.replace('=', ": "));
        }
        self.section(&mut text, "Annotations for testing.", &self.test());
        self.section(&mut text, "Annotations of this operator.", &self.own);
        text
    }

    fn section(&self, text: &mut String, title: &str, values: &[(String, String)]) {
        if values.is_empty() {
            return;
        }
        let _ = write!(text, "\n  # {title}\n");
        for (key, value) in values {
            let map = serde_json::json!({ key: value });
            // One entry of a mapping, quoted where YAML needs it.
            let line = olmkit_yaml::to_string(&map).unwrap_or_else(|_| format!("{key}: {value:?}\n"));
            for line in line.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
    }

    /// The content of `bundle.Dockerfile`.
    #[must_use]
    pub fn dockerfile(&self) -> String {
        let mut text = String::from("FROM scratch\n\n# Core bundle labels.\n");
        for (key, value) in self.core() {
            let _ = writeln!(text, "LABEL {key}={value}");
        }
        if self.scorecard {
            text.push_str("\n# Labels for testing.\n");
            for (key, value) in self.test() {
                let _ = writeln!(text, "LABEL {key}={value}");
            }
        }
        if !self.own.is_empty() {
            text.push_str("\n# Labels of this operator.\n");
            for (key, value) in &self.own {
                let _ = writeln!(text, "LABEL {key}={value:?}");
            }
        }
        let directory = &self.directory;
        let _ = write!(
            text,
            "\n# Copy files to locations specified by labels.\nCOPY {directory}/manifests /manifests/\nCOPY \
             {directory}/metadata /metadata/\n"
        );
        if self.scorecard {
            let _ = writeln!(text, "COPY {directory}/tests/scorecard /tests/scorecard/");
        }
        text
    }
}
