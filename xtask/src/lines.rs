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

/// The files from the start of the operator to the request that changes the Deployment, each with a text that it contains.
const PATH: [(&str, &str); 4] = [
    ("src/main.rs", "manager.add(controller::controller("),
    ("src/controller.rs", "operand::deployment(&kept, &image)"),
    ("src/operand/workload.rs", "replicas: Some(memcached.spec.size)"),
    ("src/operand/mod.rs", "fn metadata(memcached: &Memcached)"),
];

/// The unit of a goal or a limit.
#[derive(Clone, Copy)]
enum Count {
    Lines,
    LinesWithoutImports,
    Types,
    Files,
}

impl Count {
    fn of(self, size: Size) -> usize {
        match self {
            Self::Lines => size.lines,
            Self::LinesWithoutImports => size.lines - size.imports,
            Self::Types => size.types,
            Self::Files => size.files,
        }
    }
}

/// The largest value of each count, with the text that the table shows for it.
type Goals = &'static [(Count, usize, &'static str)];

/// The memcached operator had 1,200 lines in 14 files as its goal before it got stable servers, warm caches and TLS.
const OPERATOR: Goals = &[
    (Count::Lines, 1200, "former goal 1,200 lines"),
    (Count::Files, 14, "former goal 14 files"),
    (Count::Lines, 2000, "limit 2,000 lines"),
    (Count::Files, 17, "limit 17 files"),
];

/// Prints the sizes of the operators in this repository and of a scaffolded one.
///
/// # Errors
/// When a size is above its goal or limit. Former goals do not count.
pub fn print(root: &Path, olmkit: &Path) -> anyhow::Result<()> {
    let scaffold = tempfile::tempdir()?;
    create(olmkit, scaffold.path())?;
    let scaffold = scaffold.path();
    let (all, api) = (of(&root.join("src"))?, of(&root.join("src/api"))?);
    let passed = Size {
        files: path(root)?,
        ..Size::default()
    };
    println!("| sources | lines | without imports | types | files | goals and limits |\n|---|---|---|---|---|---|");
    let mut missed = row("memcached operator, `src/`", all, OPERATOR);
    missed |= row(
        "memcached operator without the types of its API, `src/api/`",
        all - api,
        &[(Count::Types, 10, "goal 10 types")],
    );
    let of_path: Goals = &[(Count::Files, 4, "goal 4 files")];
    println!(
        "| files that a change of `spec.size` passes until the request | | | | {} | {} |",
        passed.files,
        shown(passed, of_path)
    );
    missed |= is_missed(passed, of_path);
    missed |= row(
        "scaffolded controller with a Deployment",
        of(&scaffold.join("src/controller/memcached.rs"))?,
        &[(Count::Lines, 60, "goal 60 lines")],
    );
    missed |= row(
        "scaffolded operator with a Deployment, packaging included",
        of(&scaffold.join("src"))?,
        &[],
    );
    missed |= row(
        "complete operator with Deployment and Service, `crates/manager/examples/tomcat.rs`",
        of(&root.join("crates/manager/examples/tomcat.rs"))?,
        &[(Count::LinesWithoutImports, 100, "goal 100 lines without imports")],
    );
    missed |= row(
        "Valkey operator",
        of(&root.join("examples/valkey-operator/src"))?,
        &[(Count::LinesWithoutImports, 260, "goal 260 lines without imports")],
    );
    println!(
        "\nEmpty lines, comments, tests and files of tests do not count.\n\nRequests for ten irrelevant changes: `cargo test -p kube-manager --test reconcile a_settled_object`. Drift cases: `cargo test -p kube-manager \
         --test apply -- --nocapture`."
    );
    ensure!(!missed, "a size is above its goal or limit");
    Ok(())
}

/// The number of files in [`PATH`].
fn path(root: &Path) -> anyhow::Result<usize> {
    for (file, text) in PATH {
        let source = fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
        ensure!(
            source.contains(text),
            "{file} does not contain {text:?}; correct the path in lines.rs"
        );
    }
    Ok(PATH.len())
}

/// Prints a row. Returns true if the size misses a goal.
fn row(name: &str, size: Size, goals: Goals) -> bool {
    let Size {
        lines,
        imports,
        types,
        files,
    } = size;
    println!(
        "| {name} | {lines} | {} | {types} | {files} | {} |",
        lines - imports,
        shown(size, goals)
    );
    is_missed(size, goals)
}

fn is_missed(size: Size, goals: Goals) -> bool {
    let mut binding = goals.iter().filter(|(.., text)| !text.starts_with("former"));
    binding.any(|(count, most, _)| count.of(size) > *most)
}

/// The goals and limits, each with its result.
fn shown(size: Size, goals: Goals) -> String {
    let shown = goals
        .iter()
        .map(|(count, most, text)| match count.of(size).checked_sub(*most) {
            None | Some(0) => format!("{text}: met"),
            Some(above) => format!("{text}: missed by {above}"),
        });
    shown.collect::<Vec<_>>().join(", ")
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

    #[test]
    fn a_missed_goal_is_shown() {
        let size = Size {
            lines: 1950,
            files: 14,
            ..Size::default()
        };
        let expected = "former goal 1,200 lines: missed by 750, former goal 14 files: met, limit 2,000 lines: met, limit 17 files: met";
        assert_eq!(shown(size, OPERATOR), expected);
        assert!(!is_missed(size, OPERATOR));
        let larger = Size { lines: 2001, ..size };
        assert!(is_missed(larger, OPERATOR));
    }

    #[test]
    fn the_files_of_the_path_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(path(&root).unwrap(), PATH.len());
    }
}
