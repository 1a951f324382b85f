//! The budget of an evaluation, and the reasons why it can end without a value.

use std::fmt;

use crate::limits;

/// Remaining steps and bytes.
#[derive(Debug, Clone)]
pub struct Budget {
    steps: u64,
    bytes: u64,
}

impl Budget {
    /// A budget of evaluator steps, each about a node of the tree or ten bytes of a string, and of allocated bytes.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self { steps, bytes }
    }

    /// The budget of all rules of a schema for one object.
    pub fn for_object() -> Self {
        Self::new(limits::OBJECT_STEPS, limits::OBJECT_BYTES)
    }

    /// The budget of all objects of a bundle, such as its examples.
    pub fn for_bundle() -> Self {
        Self::new(limits::BUNDLE_STEPS, limits::BUNDLE_BYTES)
    }

    /// Returns true if nothing is left.
    pub fn is_exhausted(&self) -> bool {
        self.steps == 0 || self.bytes == 0
    }

    /// Steps that are left.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Bytes that are left.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The remaining budget, at most as large as another one.
    #[must_use]
    pub fn at_most(&self, other: &Self) -> Self {
        Self::new(self.steps.min(other.steps), self.bytes.min(other.bytes))
    }

    /// Takes the part that a sub-budget has used, given its start and its rest.
    pub fn take_used(&mut self, begin: &Self, rest: &Self) {
        self.steps = self.steps.saturating_sub(begin.steps.saturating_sub(rest.steps));
        self.bytes = self.bytes.saturating_sub(begin.bytes.saturating_sub(rest.bytes));
    }

    /// Takes steps. An exhausted budget remains exhausted.
    ///
    /// # Errors
    /// [`Failure::Exhausted`] if fewer are left.
    pub fn step(&mut self, steps: u64) -> Result<(), Failure> {
        match self.steps.checked_sub(steps) {
            Some(left) if left > 0 => {
                self.steps = left;
                Ok(())
            }
            _ => {
                self.steps = 0;
                Err(Failure::Exhausted)
            }
        }
    }

    /// Takes bytes, before they are allocated.
    ///
    /// # Errors
    /// [`Failure::Exhausted`] if fewer are left.
    pub fn allocate(&mut self, bytes: usize) -> Result<(), Failure> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        match self.bytes.checked_sub(bytes) {
            Some(left) if left > 0 => {
                self.bytes = left;
                self.step(bytes / 64)
            }
            _ => {
                self.bytes = 0;
                Err(Failure::Exhausted)
            }
        }
    }

    /// Takes the steps for reading a string of this length.
    pub(crate) fn read(&mut self, length: usize) -> Result<(), Failure> {
        self.step(u64::try_from(length / 10 + 1).unwrap_or(u64::MAX))
    }
}

/// Why an evaluation has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The API server's evaluation fails too, with this message.
    Error(String),
    /// The API server's behavior is unknown. The reason.
    Undecided(String),
    /// The budget is exhausted.
    Exhausted,
}

impl Failure {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }

    pub(crate) fn undecided(reason: impl Into<String>) -> Self {
        Self::Undecided(reason.into())
    }

    pub(crate) fn no_overload() -> Self {
        Self::Error("no such overload".to_owned())
    }

    /// Combines the failures of two terms of `&&` or `||`: the less specific one.
    pub(crate) fn or(self, known: Option<Self>) -> Self {
        match known {
            None => self,
            Some(known) if matches!(known, Self::Undecided(_)) => known,
            Some(known) if matches!(self, Self::Error(_)) => known,
            Some(_) => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(message) | Self::Undecided(message) => f.write_str(message),
            Self::Exhausted => f.write_str("the evaluation takes too many steps or too much memory"),
        }
    }
}

impl std::error::Error for Failure {}
