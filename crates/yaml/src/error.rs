//! Errors of the reader, the writer and typed decoding.

use super::Position;

/// Why a value could not be read, decoded or written.
///
/// The messages of each variant are those of the Go libraries, because operator-sdk prints them and people search for
/// them. That includes go-yaml's line numbers, which are one too low for errors of its parser stage.
/// [`Error::position`] is the true position.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is not YAML, or go-yaml does not support it.
    #[error("yaml: {}{problem}", go_line(.line))]
    Yaml {
        /// go-yaml's error message.
        problem: String,
        /// The line as go-yaml counts it. It leaves out the line of some errors.
        line: Option<u32>,
        /// The true place.
        position: Option<Position>,
    },
    /// The document is valid but exceeds a limit on size, depth or expansion.
    #[error("yaml: {problem}")]
    Limit {
        /// The limit and its value.
        problem: String,
        /// Position at which the limit was reached.
        position: Option<Position>,
    },
    /// The value has no form in JSON: `.nan`, `.inf`, a null key.
    #[error("{problem}")]
    NotJson {
        /// Go's error message.
        problem: String,
        /// Position of the value.
        position: Option<Position>,
    },
    /// A stream that started as JSON cannot be read on.
    #[error("{problem}")]
    Json {
        /// The error.
        problem: String,
        /// Position.
        position: Option<Position>,
    },
    /// A line starts with `---` but something other than a comment follows.
    #[error("invalid Yaml document separator: {text}")]
    Separator {
        /// The rest of the line after the dashes.
        text: String,
        /// Start of the line.
        position: Position,
    },
    /// The document is sound, but a value has the wrong type for the field it is decoded into.
    #[error("{problem}")]
    Decode {
        /// Error message of Go's encoding/json.
        problem: String,
        /// Path of the value, such as `spec.install.spec.deployments[0].name`.
        path: String,
        /// Position of the value.
        position: Option<Position>,
    },
    /// A document could not be read while a typed value was wanted.
    #[error("error converting YAML to JSON: {0}")]
    Convert(Box<Error>),
    /// A document was read but does not fit the wanted type.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Unmarshal(Box<Error>),
    /// A value could not be serialized.
    #[error("error marshaling into JSON: {problem}")]
    Marshal {
        /// serde's error message.
        problem: String,
    },
}

impl Error {
    /// The true place of the error in the file, where one is known.
    pub fn position(&self) -> Option<Position> {
        match self {
            Error::Yaml { position, .. }
            | Error::Limit { position, .. }
            | Error::NotJson { position, .. }
            | Error::Json { position, .. }
            | Error::Decode { position, .. } => *position,
            Error::Separator { position, .. } => Some(*position),
            Error::Convert(inner) | Error::Unmarshal(inner) => inner.position(),
            Error::Marshal { .. } => None,
        }
    }

    /// Path of the offending value, for errors of typed decoding.
    pub fn path(&self) -> Option<&str> {
        match self {
            Error::Decode { path, .. } => Some(path),
            Error::Convert(inner) | Error::Unmarshal(inner) => inner.path(),
            _ => None,
        }
    }

    /// A YAML error whose place go-yaml does not print.
    pub(super) fn without_line(problem: impl Into<String>, position: Option<Position>) -> Self {
        Error::Yaml {
            problem: problem.into(),
            line: None,
            position,
        }
    }
}

fn go_line(line: &Option<u32>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}
