//! The cluster flows against a real control plane with the real Operator Lifecycle Manager.
//!
//! Needs the programs that `dev/tools/build.sh control-plane` builds. Each test starts its own control plane and carries out
//! several scenes on it, since starting one costs more than a scene.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod api_server;
mod bundle;
mod bundle_extract;
mod catalogd;
mod drills;
mod extension;
mod foreign;
mod harness;
mod install;
mod installer;
mod killed;
mod kinds;
mod kubeconfigs;
mod late_pass;
mod lints;
mod malformed;
mod migrate;
mod offered;
mod olm_release;
mod operands;
mod proxy;
mod rights;
mod scorecard;
mod troubleshoot;
