//! Renders `config/` for a Rust operator from its own types.
