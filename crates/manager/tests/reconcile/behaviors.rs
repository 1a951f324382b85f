//! The behaviors that public reports of other libraries ask for.
