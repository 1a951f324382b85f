//! `olmkit bundle validate`: its output and exit code.

mod against;
mod command;
mod fixes;
mod multiarch;
mod olm_v1;
mod outputs;
mod policy;
mod repair;
