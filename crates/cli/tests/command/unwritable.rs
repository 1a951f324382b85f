//! Every command that writes: on a full disk, in a read-only directory, and as the user of a restricted pod.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The user of a pod that need not be root.
const USER: u32 = 1001;

/// The commands, and their output files.
const WRITERS: &[(&[&str], &str)] = &[
    (&["catalog", "migrate", "catalog", "out"], "out"),
    (
        &[
            "catalog",
            "deprecate",
            "memcached-operator",
            "-m",
            "old",
            "--in",
            "catalog",
        ],
        "catalog",
    ),
    (
        &["catalog", "serve", "catalog", "--cache-only", "--cache-dir", "cache"],
        "cache",
    ),
    (&["image", "build", "bundle", "bundle", "-t", "localhost/x:1"], "store"),
    (
        &[
            "image",
            "build",
            "bundle",
            "bundle",
            "-t",
            "localhost/x:1",
            "-o",
            "oci:layout",
        ],
        "layout",
    ),
    (
        &[
            "image",
            "build",
            "bundle",
            "bundle",
            "-t",
            "localhost/x:1",
            "-o",
            "oci-archive:a.tar",
        ],
        "a.tar",
    ),
    (&["image", "load", "image.tar"], "store"),
    (&["image", "copy", "oci-archive:image.tar", "oci:layout"], "layout"),
    (&["bundle", "unpack", "bundle", "-o", "unpacked"], "unpacked"),
];

/// A directory with the commands' inputs.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let repository = test_support::repository("");
    for name in ["bundle", "catalog"] {
        copy(&repository.join(name), &directory.path().join(name));
    }
    let build = [
        "image",
        "build",
        "bundle",
        "bundle",
        "-t",
        "localhost/b:1",
        "-o",
        "oci-archive:image.tar",
    ];
    let built = command(directory.path(), &build).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    let _ = fs::remove_dir_all(directory.path().join("store"));
    directory
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A shell that runs `before` and then becomes the command.
fn shell(directory: &Path, before: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            &format!("{before}; exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_olmkit"),
        ])
        .args(arguments)
        .current_dir(directory)
        .env("OLMKIT_IMAGE_STORE", "store")
        .env("SOURCE_DATE_EPOCH", "1");
    command
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    shell(directory, ":", arguments)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file below a directory with its length and modification time.
fn files(directory: &Path) -> BTreeMap<PathBuf, (u64, i64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path(), (metadata.len(), metadata.mtime_nsec()));
            }
        }
    }
    found
}

/// One clear error, and unchanged existing files.
#[track_caller]
fn refused(arguments: &[&str], output: &Output, reason: &str, place: &str) {
    let text = said(output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error:")).collect();
    let [error] = errors.as_slice() else {
        panic!("{arguments:?}: {text}")
    };
    assert!(error.contains(reason), "{arguments:?}: {error}");
    assert!(error.contains(place), "{arguments:?} does not name {place}: {error}");
}

/// A file size limit simulates a full disk: a write that exceeds it fails in the middle.
#[test]
fn a_full_disk_is_reported_and_leaves_nothing_half() {
    for (arguments, place) in WRITERS {
        let directory = directory();
        let before = files(directory.path());
        let output = shell(directory.path(), "trap '' XFSZ; ulimit -f 1", arguments)
            .output()
            .unwrap();
        // Images are first written to the store, or a temporary directory.
        let place = if arguments[0] == "image" {
            "cannot write to "
        } else {
            place
        };
        refused(arguments, &output, "File too large", place);
        let mut after = files(directory.path());
        // An empty store is one, too.
        let empty = ["index.json", "oci-layout", ".lock"];
        after.retain(|path, (length, _)| !(empty.iter().any(|name| path.ends_with(name)) && *length < 100));
        assert_eq!(after, before, "{arguments:?}");
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_named() {
    let user = user();
    for (arguments, place) in WRITERS {
        let directory = directory();
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
        for part in ["catalog", "catalog/memcached-operator"] {
            let part = directory.path().join(part);
            fs::set_permissions(part, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
        }
        let before = files(directory.path());
        let mut command = command(directory.path(), arguments);
        let output = as_user(&mut command, user).output().unwrap();
        let place = match arguments {
            ["image", "build" | "load", ..] => "store",
            ["image", ..] => "",
            ["catalog", "migrate", ..] | ["bundle", ..] => "",
            _ => place,
        };
        refused(arguments, &output, "ermission denied", place);
        assert_eq!(files(directory.path()), before, "{arguments:?}");
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
}

/// As in a pod that runs as any user: no entry in /etc/passwd, no home, and its own directory.
#[test]
fn any_user_writes_into_folders_of_its_own() {
    let user = user();
    for (arguments, place) in WRITERS {
        let directory = directory();
        give(directory.path(), user);
        let mut command = command(directory.path(), arguments);
        command.env("HOME", "/nonexistent").env("TMPDIR", directory.path());
        let output = as_user(&mut command, user).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        assert!(directory.path().join(place).exists(), "{arguments:?}");
    }
}

/// Another user than root, whom permissions do not stop. This one where it is not root.
fn user() -> Option<u32> {
    let probe = tempfile::tempdir().unwrap();
    (fs::metadata(probe.path()).unwrap().uid() == 0).then_some(USER)
}

fn as_user(command: &mut Command, user: Option<u32>) -> &mut Command {
    match user {
        Some(user) => command.uid(user).gid(user),
        None => command,
    }
}

fn give(path: &Path, user: Option<u32>) {
    let Some(user) = user else { return };
    std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give(&entry.path(), Some(user));
        } else {
            std::os::unix::fs::chown(entry.path(), Some(user), Some(user)).unwrap();
        }
    }
}
