//! Runs `olmkit repo` on generated repositories. Only git may start, and no file outside the repository may be opened.
//! `fuzz/fuzz_targets/clone.rs` runs the same commands on fuzzed input. `HOSTILE_SEEDS=12..40` selects other repositories.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use test_support::hostile_repository::{HostileRepository, SECRET};

/// The seeds of the repositories. Five commands read each.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("HOSTILE_SEEDS") else {
        return 0..12;
    };
    let (first, end) = text.split_once("..").expect("HOSTILE_SEEDS must be FIRST..END");
    first.parse().unwrap()..end.parse().unwrap()
}

/// Pseudorandom bytes for a seed.
fn bytes(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(step).take(100).collect()
}

/// Runs a command. Returns its output and the system calls that open files or start programs.
fn traced(arguments: &[String], folder: &Path) -> (String, String) {
    let log = folder.join("calls");
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-y",
            "--seccomp-bpf",
            "-s",
            "200",
            "-e",
            "trace=execve,execveat,open,openat,openat2",
            "-o",
        ])
        .arg(&log)
        .arg(assert_cmd::cargo::cargo_bin("olmkit"))
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        matches!(output.status.code(), Some(0..=2)),
        "{arguments:?}: {}: {text}",
        output.status
    );
    // A command line with an error would check nothing.
    assert!(!text.contains("Usage:"), "{arguments:?}: {text}");
    (text, std::fs::read_to_string(log).unwrap())
}

#[test]
fn repo_commands_start_only_git_and_open_no_outside_file() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        println!("skipped: strace is not installed");
        return;
    }
    let (mut started, mut opened) = (0, 0);
    for number in seeds() {
        let hostile = HostileRepository::new(&bytes(number));
        let home = tempfile::tempdir().unwrap();
        let outside = std::fs::canonicalize(hostile.outside()).unwrap();
        for arguments in hostile.commands() {
            let place = format!("repository {number}, {arguments:?}");
            let (text, calls) = traced(&arguments, home.path());
            assert!(!text.contains(SECRET), "{place}: {text}");
            let mut programs: HashMap<&str, &str> = HashMap::new();
            let mut pending: HashMap<&str, &str> = HashMap::new();
            for call in calls.lines() {
                let (pid, call) = call.split_once(' ').unwrap_or_default();
                let call = call.trim_start();
                let is_exec = call.starts_with("exec") || call.starts_with("<... exec");
                if is_exec && call.contains('"') {
                    pending.insert(pid, call.split('"').nth(1).unwrap_or_default());
                }
                let Some((_, result)) = call.rsplit_once(" = ").filter(|(_, result)| !result.starts_with('-')) else {
                    continue;
                };
                if is_exec {
                    started += 1;
                    let program = pending.remove(pid).unwrap_or_default();
                    let name = program.rsplit('/').next().unwrap_or_default();
                    assert!(
                        name == "olmkit" || name == "git" || name.starts_with("git-"),
                        "{place}: {call}"
                    );
                    programs.insert(pid, name);
                    continue;
                }
                opened += 1;
                // Git may read the files that its settings name. It prints none of them.
                if programs.get(pid).is_some_and(|name| name.starts_with("git")) {
                    continue;
                }
                // strace prints the resolved path of the descriptor.
                let path = result
                    .split_once('<')
                    .map_or("", |(_, path)| path.trim_end_matches('>'));
                let is_secret = path.ends_with("/environ") || path == "/dev/zero";
                assert!(!is_secret && !Path::new(path).starts_with(&outside), "{place}: {call}");
            }
        }
        assert_eq!(hostile.ran(), "", "repository {number}");
    }
    assert!(started > 40 && opened > 1000, "{started} {opened}");
}
