//! Kills a writer at each system call of its way.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// What changes something on a disk, or makes it last.
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
/// Names the folder for the writer.
const FOLDER: &str = "TEST_KILLED_FOLDER";
/// Where in it the writer has its temporary files.
pub const TEMPORARY: &str = "temporary";

/// The folder to write to, in the process that is to be killed.
pub fn folder() -> Option<OsString> {
    std::env::var_os(FOLDER)
}

/// Runs the test `writer` of the running test program, which writes to [`folder`], again and again in a folder that
/// `prepare` has filled. Each time it is killed at another system call, and `check` looks at what is left. Returns how
/// often; `None`, with a line that says so, if strace is not installed.
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

/// Makes what is in a folder as old as if the writer had been killed a while ago.
pub fn age(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            age(&entry.path());
        } else if let Ok(file) = std::fs::File::options().append(true).open(entry.path()) {
            file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        }
    }
}
