//! Runs memcached on Kubernetes.
