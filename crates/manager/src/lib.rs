//! Leader election, probes, metrics, back-off and orderly shutdown for kube-rs operators.
