//! Runs memcached on Kubernetes.
fn main() {}
