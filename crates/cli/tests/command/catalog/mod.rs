//! The catalog commands, as a user types them, on the bundles of this repository.

mod ended;
mod opm;
mod opm_name;
mod path;
mod resolve;
mod serve;
mod source;
mod under_load;

use std::path::{Path, PathBuf};
use std::process::Command;

const TEMPLATE: &str = "quay.io/example/memcached-operator-bundle:v{{.Version}}";
const OLD: &str = "memcached-operator.v0.0.1";
const NEW: &str = "memcached-operator.v0.1.0";

/// Output of a command, and its exit code.
struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Answer {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    fn refused(self, wanted: &str) {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        assert!(self.err.contains(wanted), "{}", self.err);
    }
}

/// A user's directory with the repository's bundles.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Desk(tempfile::tempdir().unwrap());
        let repository = test_support::repository("");
        copy(&repository.join("releases/0.0.1/bundle"), &desk.path("old"));
        copy(&repository.join("bundle"), &desk.path("new"));
        // Replaces the server in images that are not run: the header of an empty static program for this machine.
        let mut server = std::fs::read(env!("CARGO_BIN_EXE_olmkit")).unwrap();
        server.truncate(64);
        server[56..58].fill(0);
        std::fs::write(desk.path("server"), server).unwrap();
        desk
    }

    /// With a catalog of both bundles, made by commands.
    fn with_catalog() -> Self {
        let desk = Desk::new();
        std::fs::create_dir_all(desk.path("catalog/memcached-operator")).unwrap();
        let package = desk
            .run(&["catalog", "init", "memcached-operator", "-c", "alpha", "-o", "yaml"])
            .ok();
        std::fs::write(desk.path(SOURCE), package).unwrap();
        for bundle in ["old", "new"] {
            let migrate = ["--migrate-level", "bundle-object-to-csv-metadata"];
            let add = [
                "catalog",
                "add",
                bundle,
                "--channel",
                "alpha",
                "--image-ref-template",
                TEMPLATE,
            ];
            desk.run(&[&add[..], &migrate].concat()).ok();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("OLMKIT_IMAGE_STORE", self.path("store"))
            .env("SOURCE_DATE_EPOCH", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        let output = self.command(arguments).output().unwrap();
        Answer {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

const SOURCE: &str = "catalog/memcached-operator/catalog.yaml";

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
