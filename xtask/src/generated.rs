//! Compares committed files with what generates them: `cargo xtask go-files` and `cargo xtask rendered`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::command::{output, run};

/// A Go program in `dev`, its argument, and the file that it prints.
const GO: &[(&str, &str, &str)] = &[
    ("go-vectors", "tables", "crates/go/src/unicode/tables.rs"),
    ("go-vectors", "vectors", "crates/go/tests/vectors.json"),
    ("go-vectors", "quantities", "crates/go/tests/quantities.json"),
    ("go-vectors", "orders", "crates/go/tests/orders.txt"),
    ("go-vectors", "patterns", "crates/cel/tests/patterns.json"),
    ("go-vectors", "readiness", "crates/manager/tests/readiness.txt"),
    ("go-types", "", "crates/go/src/structs/structs.txt"),
];

/// The settings with which `dev/tools/build.sh` builds. With others, Go would compile the standard library and shared modules
/// once more.
const GO_SETTINGS: &[(&str, &str)] = &[
    ("CGO_ENABLED", "0"),
    (
        "GOFLAGS",
        "-buildvcs=false -trimpath -mod=readonly -gcflags=all=-dwarf=false",
    ),
];

/// Compares the files that Go programs print with the committed ones, or writes them.
///
/// # Errors
/// If a file differs, or a program fails.
pub fn go_files(root: &Path, write: bool) -> anyhow::Result<()> {
    let mut old = Vec::new();
    for (program, argument, file) in GO {
        let mut go = Command::new("go");
        go.args(["run", "."])
            .args(Some(argument).filter(|argument| !argument.is_empty()));
        go.envs(GO_SETTINGS.iter().copied());
        let printed = output(go.current_dir(root.join("dev").join(program)))?;
        if write {
            std::fs::write(root.join(file), printed).context(*file)?;
            continue;
        }
        if std::fs::read_to_string(root.join(file)).context(*file)? != printed {
            let new = tempfile::NamedTempFile::new()?;
            std::fs::write(new.path(), printed)?;
            differences(root, &[Path::new("-u"), Path::new(file), new.path()])?;
            old.push(*file);
        }
    }
    if !old.is_empty() {
        let version = output(Command::new("go").arg("version"))?;
        bail!(
            "not what {} prints: {}; run cargo xtask go-files --write and commit the result",
            version.trim(),
            old.join(" ")
        );
    }
    if !write {
        println!("the vectors, the patterns, the Unicode tables and structs.txt are what Go prints");
    }
    Ok(())
}

/// Files and directories that `make manifests bundle catalog` writes.
const RENDERED: &[&str] = &["config", "bundle", "bundle.Dockerfile", "catalog"];

/// Renders `config/`, `bundle/` and `catalog/` in a copy, with programs that are built. The tree does not change, so other
/// checks can run at the same time.
///
/// # Errors
/// If a committed file differs, is missing or should not exist.
pub fn rendered(root: &Path, target: &Path) -> anyhow::Result<()> {
    let copy = tempfile::tempdir()?;
    std::fs::create_dir(copy.path().join("dev"))?;
    let needed = RENDERED
        .iter()
        .chain(&["releases", "Makefile", "Cargo.toml", "dev/catalog.sh"]);
    for path in needed {
        run(Command::new("cp")
            .arg("-r")
            .arg(root.join(path))
            .arg(copy.path().join(path)))?;
    }
    run(Command::new("make")
        .arg("-s")
        .arg("-C")
        .arg(copy.path())
        .args(["--old-file", "quick-build", "--old-file", "build"])
        .args(["manifests", "bundle", "catalog"])
        .env("CARGO_TARGET_DIR", target))?;
    let mut different = Vec::new();
    for path in RENDERED {
        let is_equal = differences(root, &[Path::new("-ru"), Path::new(path), &copy.path().join(path)])?;
        different.extend((!is_equal).then_some(*path));
    }
    ensure!(
        different.is_empty(),
        "not what the code renders: {}; run `make manifests bundle catalog` and commit the result",
        different.join(" ")
    );
    println!("config/, bundle/ and catalog/ are what the code renders");
    Ok(())
}

/// Prints the differences of two files or directories. True if there are none.
fn differences(root: &Path, arguments: &[&Path]) -> anyhow::Result<bool> {
    let status = Command::new("diff").args(arguments).current_dir(root).status();
    match status.context("cannot run diff")?.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("diff failed"),
    }
}
