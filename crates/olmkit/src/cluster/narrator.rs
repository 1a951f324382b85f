//! Who hears how a flow comes along.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Listens to a flow. Implementations print; tests and `-o json` collect.
pub trait Narrator: Send + Sync {
    /// Something is done.
    fn done(&self, after: Duration, text: &str);
    /// Something is being waited for; replaces what was waited for before.
    fn waiting(&self, after: Duration, text: &str);
}

/// One thing that is done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Seconds since the flow began.
    pub seconds: f64,
    /// What was done.
    pub text: String,
}

/// The telling of one flow: tells a narrator and remembers the steps.
pub struct Story<'a> {
    narrator: &'a dyn Narrator,
    began: Instant,
    /// What was told.
    pub steps: Vec<Step>,
    waiting: String,
}

impl<'a> Story<'a> {
    /// Begins now.
    pub fn begin(narrator: &'a dyn Narrator) -> Self {
        Story {
            narrator,
            began: Instant::now(),
            steps: Vec::new(),
            waiting: String::new(),
        }
    }

    /// How long it has been going.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Tells that something is done.
    pub fn done(&mut self, text: impl Into<String>) {
        let (after, text) = (self.began.elapsed(), text.into());
        self.narrator.done(after, &text);
        self.steps.push(Step {
            seconds: (after.as_secs_f64() * 10.0).round() / 10.0,
            text,
        });
        self.waiting.clear();
    }

    /// Tells what is waited for, once.
    pub fn waiting(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.waiting != text {
            self.narrator.waiting(self.began.elapsed(), &text);
            self.waiting = text;
        }
    }
}
