//! Shows how far long work is, on standard error: a bar on a terminal, a line every ten seconds elsewhere, as in the log of a CI job.
//! Work that ends before that shows nothing, nor does any with `--quiet`.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use olmkit::limits;

use crate::terminal;

/// Time after which a terminal shows the progress.
const SOON: Duration = Duration::from_millis(500);
/// Redraw interval of the bar.
const DRAWN: Duration = Duration::from_millis(100);
/// Interval of progress lines without a terminal.
pub const LINE: Duration = Duration::from_secs(10);

/// Unit of the count.
#[derive(Clone, Copy)]
pub enum Unit {
    /// The unit of the count, in the plural: bundles, operators.
    Things(u64, &'static str),
    /// Bytes read.
    Read,
}

/// Long work. It is shown until this is dropped.
pub struct Progress {
    done: Arc<AtomicU64>,
    bar: ProgressBar,
    ended: Option<Sender<()>>,
    shown: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts a progress display. `verb` names the activity, such as `validating`.
    pub fn begin(verb: &'static str, unit: Unit) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let work = Work {
            verb,
            unit,
            done: done.clone(),
            read_before: limits::bytes_read(),
            start: Instant::now(),
        };
        let (ended, end) = channel();
        let drawn = bar.clone();
        let show = move || {
            let is_terminal = std::io::stderr().is_terminal();
            let mut wait = if is_terminal { SOON } else { LINE };
            while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                if is_terminal {
                    work.draw(&drawn, wait == SOON);
                    wait = DRAWN;
                } else {
                    note!("{}", work.line());
                }
            }
        };
        // Without a thread the progress is not shown.
        let shown = (!terminal::is_quiet())
            .then(|| std::thread::Builder::new().name("progress".into()).spawn(show).ok())
            .flatten();
        Self {
            done,
            bar,
            ended: Some(ended),
            shown,
        }
    }

    /// One more thing is done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Prints something while the bar is out of the way.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ended.take();
        // So that nothing is drawn afterwards.
        if let Some(shown) = self.shown.take() {
            let _ = shown.join();
        }
        self.bar.finish_and_clear();
    }
}

/// State shared with the thread that shows the progress.
struct Work {
    verb: &'static str,
    unit: Unit,
    done: Arc<AtomicU64>,
    read_before: u64,
    start: Instant,
}

impl Work {
    fn done(&self) -> u64 {
        match self.unit {
            Unit::Things(..) => self.done.load(Ordering::Relaxed),
            Unit::Read => limits::bytes_read().saturating_sub(self.read_before),
        }
    }

    /// `validating: 120 of 500 bundles, 12/s`
    fn line(&self) -> String {
        let seconds = self.start.elapsed().as_secs().max(1);
        let (verb, done) = (self.verb, self.done());
        match self.unit {
            Unit::Things(total, things) => format!("{verb}: {done} of {total} {things}, {}/s", rate(done, seconds)),
            Unit::Read => format!("{verb}: {} read, {}/s", HumanBytes(done), HumanBytes(done / seconds)),
        }
    }

    fn draw(&self, bar: &ProgressBar, is_first: bool) {
        if is_first {
            let template = match self.unit {
                Unit::Things(total, _) => {
                    bar.set_length(total);
                    "[{bar:30}] {msg}"
                }
                Unit::Read => "{spinner} {msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(self.done());
        bar.set_message(self.line());
        bar.tick();
    }
}

/// Items per second, with one decimal if there are few.
fn rate(done: u64, seconds: u64) -> String {
    if done < 10 * seconds {
        format!("{}.{}", done / seconds, done % seconds * 10 / seconds)
    } else {
        (done / seconds).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_count_and_rate() {
        let work = |unit, done| Work {
            verb: "validating",
            unit,
            done: Arc::new(AtomicU64::new(done)),
            read_before: limits::bytes_read(),
            start: Instant::now() - Duration::from_secs(10),
        };
        let bundles = Unit::Things(500, "bundles");
        assert_eq!(work(bundles, 120).line(), "validating: 120 of 500 bundles, 12/s");
        assert_eq!(work(bundles, 25).line(), "validating: 25 of 500 bundles, 2.5/s");
        assert_eq!(work(bundles, 0).line(), "validating: 0 of 500 bundles, 0.0/s");
        assert!(work(Unit::Read, 0).line().starts_with("validating: "));
    }
}
