//! Why an expression cannot be read or does not compile.

use std::fmt;

/// An error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error.
    pub message: String,
    /// True if the expression exceeds one of olmkit's limits, which the API server may not have.
    pub is_limit: bool,
}

impl ParseError {
    pub(crate) fn at(text: &str, offset: usize, message: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message,
            is_limit: false,
        }
    }

    pub(crate) fn syntax(text: &str, offset: usize, problem: String) -> Self {
        Self::at(text, offset, format!("Syntax error: {problem}"))
    }

    pub(crate) fn limit(text: &str, offset: usize, message: String) -> Self {
        Self {
            is_limit: true,
            ..Self::at(text, offset, message)
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR: <input>:{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}
