//! An operator for Valkey: configuration, password, Services, StatefulSet, disruption budget, network policy and backups.
pub mod api;
pub mod controller;

/// The operator's name, field manager included.
pub const NAME: &str = "valkey-operator";
