//! Runs memcached on Kubernetes.
//!
//! A [`Memcached`](api::v1alpha1::Memcached) asks for a number of memcached servers. The operator keeps a Deployment, a
//! headless Service and, for more than one server, a PodDisruptionBudget as the object says, and reports in its status
//! what runs.
//!
//! | module | what it holds |
//! |---|---|
//! | [`api`] | the custom resource: everything about the CRD is said there |
//! | [`operand`] | what a Memcached consists of: pure functions |
//! | [`controller`] | observe, decide, apply, report |
//! | [`options`], [`settings`] | flags and variables |
//! | [`run`] | puts the parts together |
//! | [`permissions`] | what the operator may do: the one RBAC table |
pub mod api;
pub mod controller;
pub mod operand;
pub mod options;
pub mod permissions;
pub mod run;
pub mod settings;
