//! `xtask hold` waits for orphans, and returns the exit code of its command.
#![allow(clippy::unwrap_used)]

use std::process::Command;

fn hold(script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["hold", "--", "sh", "-c", script]);
    command
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    assert_eq!(hold("exit 7").status().unwrap().code(), Some(7));
    assert_eq!(hold("kill -9 $$").status().unwrap().code(), Some(137));
}

/// The orphan writes the file when its parent has ended for some time.
#[test]
#[cfg(target_os = "linux")]
fn orphans_are_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("written");
    let script = format!("(sleep 0.3; echo late > {}) & exit 0", file.display());
    assert!(hold(&script).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "late\n");
}
