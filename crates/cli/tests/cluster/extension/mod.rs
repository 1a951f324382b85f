//! OLM v1: the real one if operator-controller was built, and recorded conditions.

mod causes;
pub mod definitions;
mod experimental;
mod no_namespace;
mod olm_v1;
mod operator_controller;
pub mod recorded;
mod rights;
mod site;
