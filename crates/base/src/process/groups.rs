//! Running programs, each in its own process group if the process handles signals. Signals concern the whole process, so
//! the list of groups is a global value.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use super::{GRACE, PAUSE};

static STATE: Mutex<State> = Mutex::new(State {
    action: None,
    is_watched: false,
    groups: Vec::new(),
});

struct State {
    action: Option<fn()>,
    /// True if the process forwards signals to groups.
    is_watched: bool,
    /// The groups of running programs. Their leaders are not reaped, so the numbers belong to no other process.
    groups: Vec<Pid>,
}

fn state() -> MutexGuard<'static, State> {
    // The list remains consistent if a thread panics.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Action before the first program starts: it must install the signal handlers that call [`forward`] and [`end_all`].
/// From then on, each program has its own process group, which the terminal's Ctrl-C does not reach. Without an action,
/// programs stay in our process group, and a time limit ends only the program itself.
pub fn on_first_start(action: fn()) {
    state().action = Some(action);
}

/// Forwards a hangup (1), interrupt (2) or termination (15) to everything that the running programs have started.
pub fn forward(signal: i32) {
    let signal = match signal {
        1 => Signal::HUP,
        2 => Signal::INT,
        _ => Signal::TERM,
    };
    for group in &state().groups {
        let _ = kill_process_group(*group, signal);
    }
}

/// Blocks threads that start a program or wait for one.
#[must_use = "without it, threads that still run start other programs"]
pub struct Ended(#[expect(dead_code, reason = "held for its lock")] MutexGuard<'static, State>);

impl std::fmt::Debug for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Ended")
    }
}

/// Ends all running programs and everything that they have started, for a process that ends. They have two seconds
/// after the request to end. No program starts until the result is dropped.
pub fn end_all() -> Ended {
    let state = state();
    for group in &state.groups {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let start = Instant::now();
    while start.elapsed() < GRACE && !state.groups.iter().all(|group| has_ended(*group)) {
        thread::sleep(PAUSE);
    }
    for group in &state.groups {
        let _ = kill_process_group(*group, Signal::KILL);
    }
    Ended(state)
}

/// True if a child has ended. It is not reaped.
fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that there is no such child.
    !matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

/// A running program, and its process group if it has one.
pub struct Group {
    child: Child,
    pid: Option<Pid>,
    has_group: bool,
}

impl Group {
    /// Starts a program. One that prompts stays in our group if we have a terminal.
    pub fn start(mut command: Command, prompts: bool) -> io::Result<Self> {
        let action = state().action.take();
        if let Some(action) = action {
            action();
            state().is_watched = true;
        }
        let stays = prompts && File::open("/dev/tty").is_ok();
        // The lock is held until the group is in the list, so that a signal finds it there.
        let mut state = state();
        let has_group = state.is_watched && !stays;
        if has_group {
            command.process_group(0);
        }
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if has_group {
            state.groups.extend(pid);
        }
        drop(state);
        Ok(Self { child, pid, has_group })
    }

    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The exit status, if the program has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.pid.is_some_and(|pid| !has_ended(pid)) {
            return Ok(None);
        }
        // A signal handler may need the number of the group until here.
        let mut state = state();
        let status = self.child.try_wait()?;
        if status.is_some() {
            state.groups.retain(|group| Some(*group) != self.pid);
            self.pid = None;
        }
        Ok(status)
    }

    /// Ends the program and its group: first with a request, then by force.
    pub fn kill(&mut self) {
        let Some(pid) = self.pid else { return };
        let send = |signal| match self.has_group {
            true => kill_process_group(pid, signal),
            false => kill_process(pid, signal),
        };
        let _ = send(Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < GRACE && !has_ended(pid) {
            thread::sleep(PAUSE);
        }
        let mut state = state();
        let _ = send(Signal::KILL);
        let _ = self.child.wait();
        state.groups.retain(|group| *group != pid);
        self.pid = None;
    }
}

impl Drop for Group {
    /// Ends a program whose thread panicked.
    fn drop(&mut self) {
        self.kill();
    }
}
