//! Tests of the operator on a real API server with Kubernetes' own controllers.
//!
//! All tests share one control plane. Each has its own namespace and an operator process that watches it. The process
//! is authenticated as a ServiceAccount with exactly the permissions in the table.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod alerts;
mod clients;
mod compatible;
mod crashes;
mod deletion;
mod deploy;
mod drift;
mod election;
mod faults;
mod input;
// `tests/olm.rs` shares it and uses other parts of it.
#[allow(dead_code)]
mod lab;
mod lifecycle;
mod monitoring;
mod network;
mod obstacles;
mod policy;
mod quiet;
mod resize;
mod rights;
mod rollouts;
mod scenario;
mod spread;
mod stable;
mod storms;
mod unwritable;
mod upgrade;
mod warm;

/// True if the control plane has OLM.
const WITH_OLM: bool = false;
