//! What every Kubernetes object has: group, version, kind, names, labels, quantities.
