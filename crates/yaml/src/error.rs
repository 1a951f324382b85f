//! Errors of the reader, the writer and typed decoding.

use super::Position;

/// Why a text could not be read, decoded or written.
///
/// The text of each variant is the one the Go libraries give, because operator-sdk prints it and people search for it.
/// That includes go-yaml's line numbers, which are one too low for errors of its parser stage; [`Error::position`] is
/// the true place.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not YAML, or uses it in a way that go-yaml refuses.
    #[error("yaml: {}{problem}", go_line(.line))]
    Yaml {
        /// What is wrong, in go-yaml's words.
        problem: String,
        /// The line as go-yaml counts it; it leaves out the line of some errors.
        line: Option<u32>,
        /// The true place.
        position: Option<Position>,
    },
    /// The document is valid but larger, deeper or more expanded than we are willing to hold.
    #[error("yaml: {problem}")]
    Limit {
        /// Which limit, and its value.
        problem: String,
        /// Where the limit was reached.
        position: Option<Position>,
    },
    /// The value has no form in JSON: `.nan`, `.inf`, a null key.
    #[error("{problem}")]
    NotJson {
        /// What cannot be expressed, in Go's words.
        problem: String,
        /// Where it is.
        position: Option<Position>,
    },
    /// A stream that started as JSON cannot be read on.
    #[error("{problem}")]
    Json {
        /// What is wrong.
        problem: String,
        /// Where.
        position: Option<Position>,
    },
    /// A line starts with `---` but something other than a comment follows.
    #[error("invalid Yaml document separator: {text}")]
    Separator {
        /// What follows the dashes.
        text: String,
        /// Where the line starts.
        position: Position,
    },
    /// The document is sound, but a value has the wrong type for the field it is decoded into.
    #[error("{problem}")]
    Decode {
        /// What does not fit, in the words of Go's encoding/json.
        problem: String,
        /// Path of the value, such as `spec.install.spec.deployments[0].name`.
        path: String,
        /// Where the value is.
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
        /// What serde says.
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
