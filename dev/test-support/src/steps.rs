//! Makes each step of a write fail in turn, as on a full disk.

use std::cell::Cell;
use std::io;

thread_local! {
    static STEPS_LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A step of the code under test. Fails if [`with_steps`] allows no more.
///
/// # Errors
/// A full disk.
pub fn step() -> io::Result<()> {
    STEPS_LEFT.with(|left| match left.get() {
        0 => Err(io::ErrorKind::StorageFull.into()),
        some => {
            left.set(some - 1);
            Ok(())
        }
    })
}

/// Performs an action, and lets the steps after the first `steps` ones fail.
pub fn with_steps<T>(steps: usize, action: impl FnOnce() -> T) -> T {
    STEPS_LEFT.set(steps);
    let result = action();
    STEPS_LEFT.set(usize::MAX);
    result
}

/// Repeats an action with one more successful step each time, until it returns true. Returns the number of steps.
///
/// # Panics
/// After a thousand steps.
pub fn with_each_step_failing(mut action: impl FnMut(usize) -> bool) -> usize {
    (0..1000)
        .find(|&steps| with_steps(steps, || action(steps)))
        .expect("no end")
}
