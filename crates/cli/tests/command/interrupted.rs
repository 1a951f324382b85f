//! A write is killed before each of its system calls: the files on disk must be the old or the new ones, and the next
//! run must succeed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::generate::support::OPERATOR;

/// The system calls that change something.
const CALLS: &[&str] = &[
    "mkdir",
    "write",
    "fsync",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "chmod",
    "fchmod",
    "flock",
];

/// A command, the files before it, and those that it writes, each of which must be old or new.
struct Case {
    arguments: &'static [&'static str],
    input: Option<PathBuf>,
    prepare: fn(&Path),
    written: &'static [&'static str],
}

#[test]
fn a_killed_writer_leaves_no_partial_file() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        println!("skipped: strace is not installed");
        return;
    }
    let inputs = tempfile::tempdir().unwrap();
    let manifests = inputs.path().join("manifests.yaml");
    fs::write(&manifests, OPERATOR).unwrap();
    let cases = [
        Case {
            arguments: &["catalog", "migrate", "catalog", "out"],
            input: None,
            prepare: |_| {},
            written: &["out"],
        },
        Case {
            arguments: &["catalog", "deprecate", "p", "-m", "old", "--in", "catalog"],
            input: None,
            prepare: |_| {},
            written: &["catalog"],
        },
        Case {
            arguments: &["generate", "bundle", "--package", "p", "--version", "0.2.0"],
            input: Some(manifests),
            prepare: |directory| {
                for path in [
                    "manifests/p.clusterserviceversion.yaml",
                    "metadata/annotations.yaml",
                    "mine",
                ] {
                    let path = directory.join("bundle").join(path);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, "annotations: {}\n").unwrap();
                }
                fs::write(directory.join("bundle.Dockerfile"), "old").unwrap();
            },
            written: &["bundle", "bundle.Dockerfile"],
        },
    ];
    for case in cases {
        case.check();
    }
}

impl Case {
    fn check(&self) {
        let new = self.directory();
        assert!(self.run(new.path(), None), "{:?}", self.arguments);
        let killed: usize = CALLS.iter().map(|call| self.check_call(call, &new)).sum();
        assert!(killed > 10, "{:?}: {killed}", self.arguments);
        println!("{:?} was killed at {killed} calls", self.arguments);
    }

    /// Kills the command before the first of these calls, then before the second, until it ends well. The number of kills.
    fn check_call(&self, name: &str, new: &TempDir) -> usize {
        let new = self.contents(new.path());
        for number in 1.. {
            let directory = self.directory();
            let old = self.contents(directory.path());
            let ended = self.run(directory.path(), Some((name, number)));
            let place = format!("{:?}, {name} {number}", self.arguments);
            // Leftovers of a killed run under our temporary names do not belong to a catalog.
            let mut now = self.contents(directory.path());
            for files in now.values_mut() {
                files.retain(|path, _| !path.to_string_lossy().starts_with(".olmkit-"));
            }
            for (written, now) in &now {
                assert!(
                    now == &old[written] || now == &new[written],
                    "{place}: {written}: {now:?}"
                );
            }
            if ended {
                return number - 1;
            }
            let again = self.run(directory.path(), None);
            if !again {
                // The second of two equal changes may be rejected.
                assert_eq!(now, new, "{place}");
                continue;
            }
            assert_eq!(self.contents(directory.path()), new, "{place}");
            // A directory whose lock is missing could be a new one of another process. It is deleted after an hour.
            let left = fs::read_dir(directory.path()).unwrap().flatten();
            let left = left.filter(|entry| entry.path().join("lock").exists());
            let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
            assert!(
                !left.iter().any(|name| name.starts_with(".olmkit-")),
                "{place}: {left:?}"
            );
        }
        unreachable!("the numbers do not end")
    }

    fn directory(&self) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("catalog")).unwrap();
        let blobs: String = ["p", "q", "r"]
            .map(|package| {
                format!(
                    "---\nschema: olm.package\nname: {package}\ndefaultChannel: c\n---\nschema: olm.channel\npackage: {package}\n\
                     name: c\nentries:\n- name: {package}.v1\n"
                )
            })
            .concat();
        fs::write(directory.path().join("catalog/catalog.yaml"), blobs).unwrap();
        (self.prepare)(directory.path());
        directory
    }

    /// Runs the command, killed before its n-th call if one is given. Returns true if it succeeded.
    fn run(&self, directory: &Path, kill_at: Option<(&str, usize)>) -> bool {
        let olmkit = assert_cmd::cargo::cargo_bin("olmkit");
        let mut command = match kill_at {
            None => Command::new(olmkit),
            Some((name, number)) => {
                let mut strace = Command::new("strace");
                strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
                strace.arg(format!("trace={name}")).arg("-e");
                strace
                    .arg(format!("inject={name}:signal=SIGKILL:when={number}"))
                    .arg(olmkit);
                strace
            }
        };
        let input = self
            .input
            .as_ref()
            .map_or(Stdio::null(), |path| fs::File::open(path).unwrap().into());
        let output = command
            .args(self.arguments)
            .current_dir(directory)
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .env("RAYON_NUM_THREADS", "1")
            .stdin(input)
            .output()
            .unwrap();
        output.status.success()
    }

    /// Every file below each of the written paths.
    fn contents(&self, directory: &Path) -> BTreeMap<&'static str, BTreeMap<PathBuf, String>> {
        let below = |name: &&'static str| {
            let files = walk(&directory.join(name));
            (*name, files)
        };
        self.written.iter().map(below).collect()
    }
}

fn walk(path: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        if next.is_dir() {
            open.extend(fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()));
        } else if next.is_file() {
            let name = next.strip_prefix(path).unwrap().to_owned();
            files.insert(name, fs::read_to_string(next).unwrap());
        }
    }
    files
}
