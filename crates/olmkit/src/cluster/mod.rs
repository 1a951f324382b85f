//! What runs against a cluster: install and remove OLM, run a bundle, upgrade, clean up, diagnose.
//!
//! Decisions are pure functions from what was observed ([`Observation`]) to what is wrong ([`Cause`]), what to create
//! ([`intent`]) and what to delete; requests are made at the edge only ([`client`]).

mod adopt;
mod bundle_image;
pub mod bundle_source;
pub mod catalog_pod;
pub mod cause;
pub mod cleanup;
pub mod client;
mod cluster_objects;
pub mod diagnose;
mod error;
pub mod explain;
pub mod facts;
pub mod health;
pub mod host_address;
mod host_catalog;
pub mod install_mode;
pub mod intent;
pub mod kinds;
mod limits;
pub mod names;
pub mod narrator;
pub mod observe;
pub mod olm;
pub mod preflight;
pub mod progress;
mod proxy;
pub mod release;
pub mod rerun;
pub mod run_bundle;
pub mod serving;
pub mod subscribe;
pub mod upgrade;
mod wait;

pub use cause::{Cause, Code, Severity};
pub use client::{Cluster, ObjectRef};
pub use error::Error;
pub use facts::BundleFacts;
pub use install_mode::InstallMode;
pub use narrator::{Narrator, Step};
pub use observe::Observation;
