//! Permissions that each command needs, in one table. The documentation is generated from it, the commands check the
//! credentials against it before they change anything, and a test compares it with the API server's audit log.

mod review;
mod right;
mod table;

pub use review::{missing, missing_always, missing_to_change, missing_to_remove};
pub use right::{Command, Place, Right, When, in_bundle};
pub use table::{RIGHTS, markdown};
