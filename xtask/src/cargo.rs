//! Reads cargo's messages: the test executables that a build made.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// An executable that runs tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// Name of the package.
    pub package: String,
    /// `lib`, `bin`, `test` or `example`.
    pub kind: String,
    /// Name of the target.
    pub target: String,
    /// Path of the executable.
    pub path: PathBuf,
    /// Directory of the package, in which `cargo test` runs it.
    pub directory: PathBuf,
}

impl Executable {
    /// The flag of `cargo test` that selects the target.
    pub fn flag(&self) -> String {
        match self.kind.as_str() {
            "lib" => "--lib".to_owned(),
            kind => format!("--{kind} {}", self.target),
        }
    }

    /// The name of its job: the package, and the target if it is not the library's own tests.
    pub fn name(&self) -> String {
        match self.kind.as_str() {
            "lib" => self.package.clone(),
            _ => format!("{} {}", self.package, self.target),
        }
    }
}

/// The test executables in the output of a build with `--message-format json`. Other lines are skipped.
pub fn executables(output: &str) -> Vec<Executable> {
    let messages = output.lines().filter(|line| line.starts_with('{'));
    let values = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.filter_map(|message| executable(&message)).collect()
}

fn executable(message: &Value) -> Option<Executable> {
    if message.get("reason")? != "compiler-artifact" || message.pointer("/profile/test")? != true {
        return None;
    }
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let manifest = Path::new(text("/manifest_path")?);
    let kind = match text("/target/kind/0")? {
        kind @ ("bin" | "test" | "example") => kind,
        _ => "lib",
    };
    Some(Executable {
        package: package(text("/package_id")?)?.to_owned(),
        kind: kind.to_owned(),
        target: text("/target/name")?.to_owned(),
        path: PathBuf::from(text("/executable")?),
        directory: manifest.parent()?.to_owned(),
    })
}

/// The warnings in the output of a build with `--message-format json`, as cargo shows them to people.
pub fn warnings(output: &str) -> Vec<String> {
    let messages = output.lines().filter(|line| line.starts_with('{'));
    let values = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut found: Vec<String> = values.filter_map(|message| warning(&message)).collect();
    // A library is compiled with and without its tests, and warns twice.
    found.sort();
    found.dedup();
    found
}

fn warning(message: &Value) -> Option<String> {
    // The summary of a crate names neither a lint nor a line.
    let names = |pointer: &str| message.pointer(pointer).is_some_and(|value| !value.is_null());
    let is_one = message.get("reason")? == "compiler-message" && (names("/message/code") || names("/message/spans/0"));
    let rendered = message.pointer("/message/rendered").and_then(Value::as_str);
    rendered.filter(|_| is_one).map(str::to_owned)
}

/// The name in a package id: `path+file:///directory/name#0.1.0` or `path+file:///directory#name@0.1.0`.
fn package(id: &str) -> Option<&str> {
    let (path, fragment) = id.rsplit_once('#')?;
    match fragment.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_of_two_builds_of_one_crate_counts_once() {
        let warning = r#"{"reason":"compiler-message","message":{"level":"warning","rendered":"warning: used `unwrap()`\n","spans":[{"file_name":"a.rs"}]}}"#;
        let summary = r#"{"reason":"compiler-message","message":{"level":"warning","code":null,"rendered":"warning: 1 warning emitted\n","spans":[]}}"#;
        let of_linker = r#"{"reason":"compiler-message","message":{"level":"warning","code":{"code":"linker_messages"},"rendered":"warning: linker stderr\n","spans":[]}}"#;
        let end = r#"{"reason":"build-finished","success":true}"#;
        let output = [warning, summary, warning, of_linker, end].join("\n");
        assert_eq!(
            warnings(&output),
            ["warning: linker stderr\n", "warning: used `unwrap()`\n"]
        );
        assert!(warnings(end).is_empty());
    }

    #[test]
    fn test_executables_are_found_among_other_messages() {
        let output = concat!(
            "   Compiling olmkit v0.1.0\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///c/crates/olmkit#0.1.0","manifest_path":"/c/crates/olmkit/Cargo.toml","target":{"kind":["lib"],"name":"olmkit"},"profile":{"test":true},"executable":"/c/target/debug/deps/olmkit-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///c/crates/olmkit#0.1.0","manifest_path":"/c/crates/olmkit/Cargo.toml","target":{"kind":["lib"],"name":"olmkit"},"profile":{"test":false},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"path+file:///c/crates/cli#olmkit-cli@0.1.0","manifest_path":"/c/crates/cli/Cargo.toml","target":{"kind":["test"],"name":"command"},"profile":{"test":true},"executable":"/c/target/debug/deps/command-2"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = executables(output);
        let names: Vec<String> = found.iter().map(Executable::name).collect();
        assert_eq!(names, ["olmkit", "olmkit-cli command"]);
        let flags: Vec<String> = found.iter().map(Executable::flag).collect();
        assert_eq!(flags, ["--lib", "--test command"]);
        let directories: Vec<&Path> = found.iter().map(|one| one.directory.as_path()).collect();
        assert_eq!(directories, [Path::new("/c/crates/olmkit"), Path::new("/c/crates/cli")]);
    }
}
