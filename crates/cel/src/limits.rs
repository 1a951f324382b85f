//! Bounds on expressions and on what their evaluation may take.

/// Most characters of an expression. The API server refuses longer ones.
pub const EXPRESSION_CHARACTERS: usize = 100_000;

/// Most levels of an expression's tree, which bounds every recursion over it: so many fit into a stack of one MiB in programs that
/// are not optimised. Rules of public operators have 11 at most. cel-go ends at 250; what lies between is undecided.
pub const DEPTH: usize = 64;

/// Most digits behind the point that `format` writes.
pub const FORMAT_PRECISION: usize = 100;

/// Most bytes of a compiled regular expression.
pub const REGEX_BYTES: usize = 1 << 20;

/// Most regular expressions kept compiled.
pub const REGEX_CACHE: usize = 32;

/// Steps that the compilation of a regular expression counts.
pub const REGEX_STEPS: u64 = 20_000;

/// Steps for one object and all rules of its schema.
pub const OBJECT_STEPS: u64 = 2_000_000;

/// Bytes that the evaluation of all rules for one object may allocate in total, freed or not.
pub const OBJECT_BYTES: u64 = 64 << 20;

/// Steps for all objects of a bundle.
pub const BUNDLE_STEPS: u64 = 5 * OBJECT_STEPS;

/// Bytes for all objects of a bundle.
pub const BUNDLE_BYTES: u64 = 4 * OBJECT_BYTES;
