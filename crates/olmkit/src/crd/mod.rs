//! CustomResourceDefinitions: from derived schemas to structural ones, and the checks of the API server.

pub mod validation;
