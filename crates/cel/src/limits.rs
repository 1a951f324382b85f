//! Limits on expressions and their evaluation.

/// Maximum characters of an expression. The API server rejects longer ones.
pub const EXPRESSION_CHARACTERS: usize = 100_000;

/// Maximum depth of an expression's tree, which bounds every recursion over it. This depth fits into a stack of one MiB
/// in debug builds. Rules of public operators have a depth of 11 at most. cel-go's limit is 250. Depths between the two
/// are undecided.
pub const DEPTH: usize = 64;

/// Maximum digits after the point in `format`.
pub const FORMAT_PRECISION: usize = 100;

/// Maximum bytes of a compiled regular expression.
pub const REGEX_BYTES: usize = 1 << 20;

/// Most regular expressions kept compiled.
pub const REGEX_CACHE: usize = 32;

/// Steps that the compilation of a regular expression counts.
pub const REGEX_STEPS: u64 = 20_000;

/// Steps for one object and all rules of its schema.
pub const OBJECT_STEPS: u64 = 2_000_000;

/// Maximum bytes that the evaluation of all rules for one object may allocate in total, freed or not.
pub const OBJECT_BYTES: u64 = 64 << 20;

/// Steps for all objects of a bundle.
pub const BUNDLE_STEPS: u64 = 5 * OBJECT_STEPS;

/// Bytes for all objects of a bundle.
pub const BUNDLE_BYTES: u64 = 4 * OBJECT_BYTES;
