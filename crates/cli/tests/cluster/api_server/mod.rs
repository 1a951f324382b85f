//! Tests olmkit's output on a real API server. Needs `make tools`.

mod definitions;
mod expressions;
mod rows;
mod server;
mod types;
mod unpacked;
