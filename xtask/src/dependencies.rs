//! Checks licenses, bans, duplicates, sources and advisories of the dependencies with cargo-deny: `cargo xtask dependencies`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::command::{self, run};

const VERSION: &str = "0.20.2";

/// Projects outside the workspace. No other check compiles the fuzz targets.
const OTHER_PROJECTS: [&str; 2] = ["dev/site", "fuzz"];

/// Runs cargo-deny with `deny.toml`. `advisories` is a directory with a database that cargo-deny has cloned, or `fetch`.
///
/// # Errors
/// If a dependency breaks a rule, a lock file is not current, or cargo-deny cannot be built.
pub fn check(root: &Path, advisories: Option<&str>) -> anyhow::Result<()> {
    for project in OTHER_PROJECTS {
        let mut update = Command::new("cargo");
        update
            .args(["update", "--quiet", "--workspace", "--locked"])
            .current_dir(root.join(project));
        run(&mut update).with_context(|| format!("{project}/Cargo.lock is not current"))?;
    }
    let program = program()?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command
            .args(["--workspace", "--all-features"])
            .args(arguments)
            .current_dir(root);
        command
    };
    run(&mut deny(&[
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]))?;
    match advisories {
        None => {
            println!(
                "skipped: advisories; pass --advisories with a directory that contains their database, or with fetch"
            );
            Ok(())
        }
        Some("fetch") => run(&mut deny(&["check", "advisories"])),
        Some(directory) => {
            // cargo-deny reads the directory from its configuration only.
            let settings = std::fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
            let path = serde_json::Value::from(directory);
            let settings = settings.replace("\n[advisories]\n", &format!("\n[advisories]\ndb-path = {path}\n"));
            let file = tempfile::Builder::new().suffix(".toml").tempfile()?;
            std::fs::write(file.path(), settings)?;
            let file = file.path().to_string_lossy();
            run(&mut deny(&[
                "--offline",
                "--config",
                &file,
                "check",
                "--disable-fetch",
                "advisories",
            ]))
        }
    }
}

/// Returns true if [`check`] need not compile cargo-deny first.
pub fn is_built() -> bool {
    command::is_installed("cargo-deny")
        || command::cached_programs().is_ok_and(|programs| programs.join("cargo-deny").is_file())
}

/// The installed cargo-deny, or one that is built once into the cache (a few minutes).
fn program() -> anyhow::Result<PathBuf> {
    if command::is_installed("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let programs = command::cached_programs()?;
    let program = programs.join("cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    std::fs::create_dir_all(&programs)?;
    // In the cache, because a rename does not cross file systems.
    let built = tempfile::tempdir_in(&programs)?;
    // The check takes seconds, so optimizing the program would cost more time than it saves. The settings of this
    // repository do not apply outside it.
    run(Command::new("cargo")
        .args(["install", "--quiet", "--locked", "--root"])
        .arg(built.path().join("installed"))
        .arg("--target-dir")
        .arg(built.path().join("target"))
        .arg(format!("cargo-deny@{VERSION}"))
        .envs([
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
        ])
        .current_dir(built.path()))?;
    std::fs::rename(built.path().join("installed/bin/cargo-deny"), &program)?;
    Ok(program)
}
