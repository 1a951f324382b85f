//! `olmkit generate bundle`: equal to operator-sdk 1.42.3 on recorded cases, and better where that loses something.

mod base;
mod digests;
mod inputs;
mod kustomized;
mod losses;
mod pinned;
mod recorded;
mod strict;
pub mod support;
mod terminal;
mod types;
mod unpacked;
mod webhooks;
