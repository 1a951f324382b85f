//! Progress reports of the operations.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Receives the progress of an operation. Implementations print. Tests and `-o json` collect.
pub trait ProgressReporter: Send + Sync {
    /// A step is done.
    fn done(&self, after: Duration, text: &str);
    /// The operation waits. Replaces the previous reason.
    fn waiting(&self, after: Duration, text: &str);
}

/// A step that is done.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Seconds since the operation started.
    pub seconds: f64,
    /// The completed action.
    pub text: String,
}

/// Reports the progress of one operation and records its steps.
pub struct ProgressLog<'a> {
    reporter: &'a dyn ProgressReporter,
    started: Instant,
    /// The steps done so far.
    pub steps: Vec<Step>,
    waiting: String,
}

impl<'a> ProgressLog<'a> {
    /// Starts the clock.
    pub fn start(reporter: &'a dyn ProgressReporter) -> Self {
        ProgressLog {
            reporter,
            started: Instant::now(),
            steps: Vec::new(),
            waiting: String::new(),
        }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Reports a step as done.
    pub fn done(&mut self, text: impl Into<String>) {
        let (after, text) = (self.started.elapsed(), text.into());
        self.reporter.done(after, &text);
        self.steps.push(Step {
            seconds: (after.as_secs_f64() * 10.0).round() / 10.0,
            text,
        });
        self.waiting.clear();
    }

    /// Reports the reason for waiting, unless it is unchanged.
    pub fn waiting(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.waiting != text {
            self.reporter.waiting(self.started.elapsed(), &text);
            self.waiting = text;
        }
    }
}
