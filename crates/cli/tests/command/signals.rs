//! Signals while a command waits for a program that ignores them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use test_support::demo_bundle;

/// Long, since other tests may occupy the processors.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits for a condition.
fn until<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A command that runs a validator, which has started another program. Both ignore the signals.
struct Waiting {
    directory: TempDir,
    child: Child,
}

impl Waiting {
    /// `prefix` are shell commands before `olmkit` starts.
    fn start(prefix: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        demo_bundle::copy(directory.path(), "demo", &[]);
        let program = directory.path().join("program");
        let script = "#!/bin/sh\ntrap '' INT TERM HUP\nsleep 600 &\nprintf '%s\\n%s\\n' $! $$ > \"$VALIDATOR_PIDS.new\"\n\
                      mv \"$VALIDATOR_PIDS.new\" \"$VALIDATOR_PIDS\"\nwait\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        // Under nohup, or in the background of a shell, the test itself ignores signals, and its children would too.
        let child = Command::new("env")
            .args(["--default-signal=HUP,INT,TERM", "sh", "-c"])
            .args([&format!("{prefix}exec \"$@\""), "sh"])
            .arg(assert_cmd::cargo::cargo_bin("olmkit"))
            .args(["bundle", "validate", "demo", "--alpha-select-external", "./program"])
            .current_dir(directory.path())
            .env("VALIDATOR_PIDS", directory.path().join("pids"))
            // A terminal sends its signals to a group.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { directory, child }
    }

    fn pids(&self) -> Vec<String> {
        let file = self.directory.path().join("pids");
        let text = until("the validator starts", || fs::read_to_string(&file).ok());
        text.lines().map(str::to_owned).collect()
    }

    /// Sends a signal to the process, or to its group if the target begins with `-`.
    fn send(&self, signal: &str, sign: &str) {
        let target = format!("{sign}{}", self.child.id());
        let status = Command::new("kill").args([signal, "--", &target]).status().unwrap();
        assert!(status.success());
    }

    fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < LIMIT, "the command still runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Its new parent may be slow to reap it.
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_signal_ends_everything_that_a_program_has_started() {
    for (signal, target, code) in [("-INT", "-", 130), ("-TERM", "", 143), ("-HUP", "", 129)] {
        let mut waiting = Waiting::start("");
        let pids = waiting.pids();
        assert_eq!(pids.len(), 2);
        waiting.send(signal, target);
        assert_eq!(waiting.ended().code(), Some(code), "{signal}");
        for pid in pids {
            until("the program ends", || (!runs(&pid)).then_some(()));
        }
    }
}

#[test]
fn a_command_under_nohup_survives_a_hangup() {
    let mut waiting = Waiting::start("trap '' HUP; ");
    let pids = waiting.pids();
    waiting.send("-HUP", "");
    waiting.send("-TERM", "");
    assert_eq!(waiting.ended().code(), Some(143));
    for pid in pids {
        until("the program ends", || (!runs(&pid)).then_some(()));
    }
}
