//! Values without requests: kinds, references, names, causes, errors and results.

pub mod cause;
pub mod error;
pub mod finding;
pub mod install_mode;
pub mod json;
pub mod kinds;
pub mod names;
pub mod object_ref;
pub mod outcome;
pub mod reporter;
