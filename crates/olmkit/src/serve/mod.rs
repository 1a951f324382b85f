//! The registry gRPC API over a catalog, and the index on disk behind it.
