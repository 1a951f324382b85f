//! OLM v0: runs, upgrades, subscribes to and removes a package.

mod adopt;
pub mod causes;
pub mod cleanup;
mod cluster_objects;
mod crd_origin;
mod flow;
mod intent;
mod limits;
pub mod preflight;
pub mod progress;
mod record;
pub mod release;
mod rerun;
pub mod run_bundle;
pub mod serve;
pub mod subscribe;
mod taken;
pub mod upgrade;
pub mod wait;
