//! Bundles: load from a directory or an image, generate from manifests, write.
