//! Runs one command and waits for all processes that it leaves behind, so that their processor time counts.
//!
//! Control planes outlive the test that started them by a moment, and the node's processes detach themselves. The system gives
//! such orphans to this process, and adds up their times when it waits for them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, WaitOptions};

/// Time that orphans get to end after the command.
const LIMIT: Duration = Duration::from_secs(15);

/// Poll interval for the remaining orphans.
const PAUSE: Duration = Duration::from_millis(50);

/// The niceness of background commands. The others get ten times as much processor time.
const BACKGROUND: i32 = 10;

/// Runs the command. The exit code is the command's, or 128 plus the number of the signal that ended it.
///
/// # Errors
/// If the command cannot be started.
pub fn hold(command: &[String], background: bool) -> anyhow::Result<ExitCode> {
    if background {
        rustix::process::nice(BACKGROUND)?;
    }
    // The whole group gets the signal. This process ends after the others.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (program, arguments) = command.split_first().context("no command")?;
    let child = Command::new(program).args(arguments).spawn();
    let child = child.with_context(|| format!("cannot start {program}"))?;
    let main = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut result: Option<(ExitStatus, Instant)> = None;
    loop {
        let options = if result.is_some() {
            WaitOptions::NOHANG
        } else {
            WaitOptions::empty()
        };
        match rustix::process::wait(options) {
            Ok(Some((pid, status))) if Some(pid) == main => {
                result = Some((ExitStatus::from_raw(status.as_raw()), Instant::now()));
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => (),
            Ok(None) if result.is_some_and(|(_, ended)| ended.elapsed() < LIMIT) => std::thread::sleep(PAUSE),
            Ok(None) => {
                eprintln!(
                    "warning: processes of this job still run {} s after its end",
                    LIMIT.as_secs()
                );
                break;
            }
            // No child is left.
            Err(_) => break,
        }
    }
    let (status, _) = result.context("the command's exit code is unknown")?;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
