//! The state of a namespace and of its pods, for both versions of OLM.

pub mod health;
pub mod observation;
pub mod pods;
