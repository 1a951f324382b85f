//! Scorecard's tests in pods: tests of a bundle with their own images, such as kuttl.
//!
//! Each test has a time limit. If it is exceeded, the result contains the pod's waiting reason, its last events and the
//! end of its log.

mod gather;
mod objects;
mod options;
mod run;
mod status;

pub use options::{Options, PodSecurity, STORAGE_IMAGE, UNTAR_IMAGE};
pub use run::{Run, pods_of};
