//! `cleanup`: removes a package. Deletes custom resources first, so that the operator can still finalize them, and no
//! object that it shares with other packages.

mod operands;
mod options;
mod residue;
mod resume;
mod run;
mod scope;

pub use crate::kube::removal::{Kept, Released, Report};
pub use options::Options;
pub use run::cleanup;
