//! `olmkit bundle validate`: what it prints and how it exits.

mod against;
mod command;
mod fixes;
mod multiarch;
mod outputs;
mod repair;
