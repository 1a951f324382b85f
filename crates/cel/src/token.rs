//! The tokens of an expression.

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A name.
    Ident(String),
    /// A name in backticks.
    Escaped(String),
    /// Digits, decimal or with `0x`, not yet read: the sign may matter.
    Int(String),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// An operator or a bracket.
    Punct(&'static str),
    End,
}
