//! OLM itself: install, status, uninstall.

mod install;
mod namespaces;
pub mod objects;
mod operands;
pub mod release;
pub mod source;
mod status;
mod uninstall;

pub use install::{InstallOptions, install};
pub use status::{Component, Status, status};
pub use uninstall::{UninstallOptions, UninstallReport, uninstall};
