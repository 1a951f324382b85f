//! Runs the tools that the tasks call.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Runs a command with the output of this process.
///
/// # Errors
/// If it cannot be started or fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = name(command);
    let status = command.status().with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name} failed: {status}");
    Ok(())
}

/// Runs a command and returns what it prints on standard output.
///
/// # Errors
/// If it cannot be started, fails or prints invalid UTF-8.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = name(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(output.status.success(), "{name} failed: {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{name} prints invalid UTF-8"))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Returns true if a program with this name is on `PATH`.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The directory with the programs that the development tools build.
///
/// # Errors
/// If no variable gives its place.
pub fn cached_programs() -> anyhow::Result<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from);
    let cache = path("OLMKIT_DEV_CACHE")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("olmkit")))
        .or_else(|| Some(path("HOME")?.join(".cache/olmkit")));
    Ok(cache.context("HOME is not set")?.join("bin"))
}

/// An environment variable, unless it is missing or empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
