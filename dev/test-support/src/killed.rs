//! Kills a writer at each system call of its way.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// System calls that change or sync data on a disk.
const CALLS: [&str; 11] = [
    "openat",
    "write",
    "fchmod",
    "fsync",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "mkdir",
    "flock",
];
/// Passes the directory to the writer.
const FOLDER: &str = "TEST_KILLED_FOLDER";
/// Subdirectory for the writer's temporary files.
pub const TEMPORARY: &str = "temporary";

/// The output directory, in the process that is to be killed.
pub fn folder() -> Option<OsString> {
    std::env::var_os(FOLDER)
}

/// Runs the test `writer` of the running test program, which writes to [`folder`], repeatedly in a directory that
/// `prepare` has filled. Each time it is killed at another system call, and `check` inspects the remaining files.
/// Returns the number of runs. Prints a line and returns `None` if strace is not installed.
pub fn at_each_call(writer: &str, prepare: impl Fn(&Path), check: impl Fn(&Path, &str)) -> Option<usize> {
    if Command::new("strace")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        eprintln!("skipped: no strace on PATH");
        return None;
    }
    let mut killed = 0;
    for call in CALLS {
        for number in 1.. {
            let folder = tempfile::tempdir().unwrap();
            prepare(folder.path());
            let temporary = folder.path().join(TEMPORARY);
            std::fs::create_dir(&temporary).unwrap();
            let mut command = Command::new("strace");
            command
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
                .arg(format!("inject={call}:signal=KILL:when={number}"))
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", writer])
                .env(FOLDER, folder.path())
                .env("TMPDIR", &temporary)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let status = command.status().unwrap();
            let place = format!("killed at {call} {number}");
            check(folder.path(), &place);
            if status.success() {
                break;
            }
            // strace ends as its child did.
            assert_eq!(status.signal(), Some(9), "{place}: the writer failed by itself");
            killed += 1;
        }
    }
    Some(killed)
}

/// Ages the contents of a directory as if the writer had been killed a while ago.
pub fn age(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            age(&entry.path());
        } else if let Ok(file) = std::fs::File::options().append(true).open(entry.path()) {
            file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        }
    }
}
