//! Typed views of the objects of the Operator Lifecycle Manager.

pub mod canonical_quantity;
pub mod convert;
pub mod decode;
pub mod encode;
pub mod go_json;
pub mod go_number;
pub mod go_text;
pub mod quantity;
pub mod structs;
pub mod time;
pub mod zero;
