//! From a permission table to Role, ClusterRole, bindings and the permissions of a ClusterServiceVersion.
