#![doc = include_str!("../README.md")]

pub mod base64;
pub mod filepath;
pub mod fmt;
pub mod json;
pub mod mail;
pub mod netip;
pub mod quantity;
pub mod semver;
pub mod sort;
pub mod strconv;
pub mod structs;
pub mod time;
pub mod unicode;
pub mod url;
