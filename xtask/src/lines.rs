//! Code lines of operators: `cargo xtask lines`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// The size of some Rust sources. Empty lines, comments and tests do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    lines: usize,
    /// Lines of `use` declarations, which `lines` includes.
    imports: usize,
    types: usize,
    files: usize,
}

impl std::ops::Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            imports: self.imports + other.imports,
            types: self.types + other.types,
            files: self.files + other.files,
        }
    }
}

impl std::ops::Sub for Size {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            lines: self.lines - other.lines,
            imports: self.imports - other.imports,
            types: self.types - other.types,
            files: self.files - other.files,
        }
    }
}

/// Prints the sizes of the operators in this repository and of a scaffolded one.
pub fn print(root: &Path, olmkit: &Path) -> anyhow::Result<()> {
    let scaffold = tempfile::tempdir()?;
    create(olmkit, scaffold.path())?;
    let controller = scaffold.path().join("src/controller/memcached.rs");
    println!("| sources | lines | without imports | types | files | goal |\n|---|---|---|---|---|---|");
    let all = of(&root.join("src"))?;
    let api = of(&root.join("src/api"))?;
    row("memcached operator, `src/`", all, "2,000 lines");
    row(
        "memcached operator without the types of its API, `src/api/`",
        all - api,
        "10 types",
    );
    for (name, path, goal) in [
        ("scaffolded controller with a Deployment", &controller, "60 lines"),
        (
            "scaffolded operator with a Deployment, packaging included",
            &scaffold.path().join("src"),
            "",
        ),
        (
            "complete operator with Deployment and Service, `crates/manager/examples/tomcat.rs`",
            &root.join("crates/manager/examples/tomcat.rs"),
            "100 lines without imports",
        ),
        (
            "Valkey operator",
            &root.join("examples/valkey-operator/src"),
            "260 lines without imports",
        ),
    ] {
        row(name, of(path)?, goal);
    }
    Ok(())
}

fn row(name: &str, size: Size, goal: &str) {
    let Size {
        lines,
        imports,
        types,
        files,
    } = size;
    println!(
        "| {name} | {lines} | {} | {types} | {files} | {goal} |",
        lines - imports
    );
}

/// Scaffolds an operator.
fn create(olmkit: &Path, folder: &Path) -> anyhow::Result<()> {
    let kind = "create api --group cache --version v1alpha1 --kind Memcached --plugins deploy-image \
                --image docker.io/library/memcached:1.6.45-alpine --image-container-command memcached,-m,64 \
                --image-container-port 11211 --run-as-user 1001";
    for arguments in ["init --domain example.com --project-name memcached-operator", kind] {
        let made = Command::new(olmkit)
            .args(arguments.split_whitespace())
            .current_dir(folder)
            .output();
        let made = made.with_context(|| format!("cannot run {}; run make build", olmkit.display()))?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    Ok(())
}

/// The size of a file, or of all files in a directory.
fn of(path: &Path) -> anyhow::Result<Size> {
    if !path.is_dir() {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        return Ok(measure(&text));
    }
    let entries: Vec<PathBuf> = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    let is_code = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_dir() || (name.ends_with(".rs") && !name.ends_with("tests.rs"))
    };
    entries
        .iter()
        .filter(is_code)
        .try_fold(Size::default(), |sum, path| Ok(sum + of(path)?))
}

fn measure(text: &str) -> Size {
    let mut size = Size {
        files: 1,
        ..Size::default()
    };
    let (mut import, mut lines) = (false, text.lines().map(str::trim).peekable());
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if line.starts_with("#[cfg(test)]") {
            skip_item(&mut lines);
            continue;
        }
        size.lines += 1;
        import |= line.starts_with("use ") || line.starts_with("pub use ");
        if import {
            size.imports += 1;
            import = !line.ends_with(';');
        }
        let item = line
            .strip_prefix("pub ")
            .or_else(|| line.strip_prefix("pub(crate) "))
            .unwrap_or(line);
        size.types += usize::from(["struct ", "enum ", "trait "].iter().any(|kind| item.starts_with(kind)));
    }
    size
}

/// Skips the lines of an item with its attributes.
fn skip_item<'t>(lines: &mut impl Iterator<Item = &'t str>) {
    let mut depth = 0;
    for line in lines {
        if depth == 0 && line.starts_with("#[") {
            continue;
        }
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
        if depth == 0 && (line.ends_with(';') || line.ends_with('}')) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_do_not_count() {
        let text = "//! Doc.\nuse a::{\n    b,\n};\n\n#[cfg(test)]\nuse c;\n/// Type.\n#[derive(Debug)]\npub struct A {\n    b: B, // b\n}\n\
                    fn f() {}\n\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn g() {\n    }\n}\nenum C {}\n";
        let expected = Size {
            lines: 9,
            imports: 3,
            types: 2,
            files: 1,
        };
        assert_eq!(measure(text), expected);
    }
}
