//! Runtime state for operators and functions during an evaluation.

use crate::budget::{Budget, Failure};
use crate::regex::Cache;
use crate::value::Value;

/// Approximate memory of one list item or map entry.
pub(crate) const ITEM: usize = 48;

/// A value, or why there is none.
pub(crate) type Outcome = Result<Value, Failure>;

/// The remaining budget, and the patterns compiled so far.
pub(crate) struct Runtime<'b> {
    pub(crate) budget: &'b mut Budget,
    pub(crate) patterns: Cache,
}

impl<'b> Runtime<'b> {
    pub(crate) fn new(budget: &'b mut Budget) -> Self {
        Self {
            budget,
            patterns: Cache::default(),
        }
    }

    /// A new string, whose cost is taken.
    pub(crate) fn text(&mut self, text: &str) -> Outcome {
        self.budget.allocate(text.len() + ITEM)?;
        Ok(Value::string(text))
    }

    /// A new list, whose items were counted.
    pub(crate) fn list(&mut self, items: Vec<Value>) -> Outcome {
        self.budget.allocate(items.len().saturating_mul(ITEM))?;
        Ok(Value::list(items))
    }
}

pub(crate) fn overflow() -> Failure {
    Failure::error("integer overflow")
}
