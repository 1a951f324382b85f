//! `olmkit bundle validate`: what it prints and how it exits.

mod against;
mod command;
mod fixes;
mod multiarch;
mod olm_v1;
mod outputs;
mod policy;
mod repair;
