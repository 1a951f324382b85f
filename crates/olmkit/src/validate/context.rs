//! Input of the rules.

use super::options::Options;
use crate::bundle::Bundle;

pub use super::csv_view::{Csv, field, items, strings};

/// A bundle with its ClusterServiceVersion at hand.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The bundle.
    pub bundle: &'a Bundle,
    /// The options.
    pub options: &'a Options,
}

impl<'a> Context<'a> {
    /// The ClusterServiceVersion, if one was decoded.
    pub fn csv(&self) -> Option<Csv<'a>> {
        let object = self.bundle.csv()?;
        Some(Csv {
            object,
            typed: object.typed.as_ref()?,
        })
    }
}
