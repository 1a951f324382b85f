//! OLM v1: the real one where somebody has built operator-controller, and what it was seen to write.

mod causes;
pub mod definitions;
mod experimental;
mod olm_v1;
mod operator_controller;
pub mod recorded;
mod rights;
mod site;
