//! Images without a daemon: references, layers, building, OCI layouts, registries.
