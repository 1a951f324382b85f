//! Runs memcached on Kubernetes.
//!
//! A [`Memcached`](api::v1alpha1::Memcached) specifies a number of memcached servers. The operator manages a Deployment
//! or StatefulSet, a headless Service and, for more than one server, a PodDisruptionBudget, and reports the state of the servers in
//! the object's status.
//!
//! | module | contents |
//! |---|---|
//! | [`api`] | the custom resource, from which the CRD is generated |
//! | [`controller`] | the reconciler and its permissions |
//! | [`operand`] | the managed objects of a Memcached: pure functions |
//! | [`observed`] | the workloads, servers and endpoints that the operator sees |
//! | [`status`] | the status of a Memcached: a pure function |
//! | [`resize`] | the memory of running servers |
//! | [`options`] | flags |
pub mod api;
pub mod controller;
pub mod observed;
pub mod operand;
pub mod options;
pub mod resize;
pub mod status;
