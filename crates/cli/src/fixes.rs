//! `--fix` of `bundle validate`, `scorecard` and `repo check`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::bundle::load::Tree;
use olmkit::fix::{Base, Fix, Fixed, FixedBase, FixedFile, NotFixed, Options, fix};
use olmkit::limits;
use olmkit::object::UntrustedText;
use olmkit::validate::source::Source;

use crate::terminal;
use crate::unified::unified;

// Flags for fixes. No doc comment: the commands that flatten this would show it as their own help.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FixFlags {
    /// Fix findings if possible. Edits YAML in place and keeps comments and formatting
    #[arg(long, help_heading = "Fixes")]
    fix: bool,
    /// Also apply fixes that need review, such as generated examples and security contexts
    #[arg(long, help_heading = "Fixes")]
    unsafe_fixes: bool,
    /// Print the changes of --fix as a unified diff without writing them. Exits with 1 if there are any
    #[arg(long, help_heading = "Fixes")]
    diff: bool,
}

impl FixFlags {
    /// Returns true if there is something to do.
    pub fn is_wanted(&self) -> bool {
        self.fix || self.diff || self.unsafe_fixes
    }

    /// Applies the fixes in all bundles. `Some` ends the command: only a diff was requested, or the flags conflict.
    pub fn run(&self, sources: &[Source], command: Command) -> anyhow::Result<Option<ExitCode>> {
        if !self.fix && !self.diff {
            if self.unsafe_fixes {
                eprintln!("error: --unsafe-fixes needs --fix or --diff");
                return Ok(Some(ExitCode::from(2)));
            }
            return Ok(None);
        }
        if let Some(image) = sources.iter().find_map(|source| source.image.as_ref()) {
            anyhow::bail!("cannot fix {image}: an image cannot be changed; pass the directory it is built from");
        }
        let options = Options {
            unsafe_fixes: self.unsafe_fixes,
            scorecard: command == Command::Scorecard,
        };
        let mut changes = false;
        for source in sources {
            let reading = source.read()?;
            let tree = &reading.bundle.tree;
            let fixed = fix(tree, &source.shown, options);
            let generator = Generator::new(&source.directory, tree);
            let review = Review::new(source, tree, &fixed, &generator, options);
            if let Generator::Base(base) = &generator {
                changes |= self.fix_base(source, &fixed, &review, &fixed.in_base(tree, base))?;
                continue;
            }
            changes |= !fixed.files.is_empty();
            if self.diff {
                print_diff(&source.directory, &fixed.files)?;
            } else {
                write(&source.directory, &fixed.files)?;
            }
            report(source, &fixed, &review, self.diff);
            if !fixed.files.is_empty() {
                generator.warn(&source.shown);
            }
        }
        Ok(match (self.diff, changes) {
            (false, _) => None,
            (true, true) => Some(ExitCode::FAILURE),
            (true, false) => Some(ExitCode::SUCCESS),
        })
    }
}

impl FixFlags {
    /// Makes the fixes in the base that a bundle is generated from. True if the base changes.
    fn fix_base(&self, source: &Source, fixed: &Fixed, review: &Review, base: &FixedBase) -> anyhow::Result<bool> {
        let files: Vec<FixedFile> = base.file.iter().cloned().collect();
        if self.diff {
            print_diff(Path::new(""), &files)?;
        } else {
            write(Path::new(""), &files)?;
            for fix in &base.made {
                note!("fixed: {}: {}", UntrustedText::new(&fix.file), fix.title);
            }
        }
        for fix in base.elsewhere.iter().chain(&review.elsewhere) {
            eprintln!(
                "not fixed: {}: {}: the bundle is generated, and the value is not in the base of its ClusterServiceVersion; change its source below config/",
                UntrustedText::new(&source.directory.join(&fix.file).display().to_string()),
                fix.title
            );
        }
        report_others(source, fixed, review);
        if !files.is_empty() && !self.diff {
            note!("run `make bundle` to update {}", UntrustedText::new(&source.shown));
        }
        Ok(!files.is_empty())
    }
}

/// Fixes that need review, if they were not requested.
#[derive(Default)]
struct Review {
    /// The ones that `--unsafe-fixes` applies.
    possible: Vec<Fix>,
    /// The ones that it does not apply, with the reasons.
    given_up: Vec<NotFixed>,
    /// The ones whose values are not in the base that the bundle is generated from.
    elsewhere: Vec<Fix>,
}

impl Review {
    fn new(source: &Source, tree: &Tree, fixed: &Fixed, generator: &Generator, options: Options) -> Self {
        if fixed.only_unsafe.is_empty() {
            return Self::default();
        }
        let options = Options {
            unsafe_fixes: true,
            ..options
        };
        let all = fix(tree, &source.shown, options);
        let mut review = Self {
            given_up: all.given_up.clone(),
            ..Self::default()
        };
        review.given_up.retain(|other| fixed.only_unsafe.contains(&other.fix));
        if let Generator::Base(base) = generator {
            review.elsewhere = all.in_base(tree, base).elsewhere;
            review.elsewhere.retain(|fix| fixed.only_unsafe.contains(fix));
        }
        review.possible.clone_from(&fixed.only_unsafe);
        review
            .possible
            .retain(|fix| !review.given_up.iter().any(|other| other.fix == *fix) && !review.elsewhere.contains(fix));
        review
    }
}

/// The command that applies fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `bundle validate` or `repo check`.
    Validate,
    /// `scorecard`
    Scorecard,
}

/// Source of a generated bundle.
enum Generator {
    /// A base next to the bundle, in `config/manifests/bases`.
    Base(Base),
    /// From a `config` directory in another form.
    Config(PathBuf),
    /// By olmkit, from unknown files.
    Unknown(String),
    /// No sign that it is generated.
    None,
}

impl Generator {
    fn new(directory: &Path, tree: &Tree) -> Self {
        let project = directory
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.parent()?.to_owned()));
        // Messages name the project as the user does.
        let shown = match directory.parent() {
            Some(parent) if directory.file_name().is_some() => Some(parent.to_owned()),
            _ => project,
        };
        if let Some(project) = shown {
            if let Some(base) = base_in(&project.join("config/manifests/bases")) {
                return Generator::Base(base);
            }
            let package = project.join("config/package.yaml");
            if package.is_file() {
                return Generator::Config(package);
            }
        }
        const BUILDER: &str = "operators.operatorframework.io.metrics.builder:";
        let annotations =
            String::from_utf8_lossy(tree.file("metadata/annotations.yaml").unwrap_or_default()).into_owned();
        let builder = annotations.lines().find_map(|line| line.trim().strip_prefix(BUILDER));
        match builder.map(|builder| builder.trim().trim_matches(['"', '\''])) {
            Some(builder) if !builder.is_empty() => Generator::Unknown(builder.to_owned()),
            _ => Generator::None,
        }
    }

    /// Reports that the next generation of the bundle overwrites the fixes.
    fn warn(&self, bundle: &str) {
        let bundle = UntrustedText::new(bundle);
        match self {
            Generator::Config(package) => note!(
                "note: {bundle} is generated: also change {} and the files in its directory, or the next `make bundle` overwrites the fixes",
                UntrustedText::new(&package.display().to_string())
            ),
            Generator::Unknown(builder) => note!(
                "note: {bundle} was generated by {}: make the fixes in its source too, or the next `make bundle` overwrites them",
                UntrustedText::new(builder)
            ),
            Generator::Base(_) | Generator::None => {}
        }
    }
}

/// The only base in a directory.
fn base_in(directory: &Path) -> Option<Base> {
    let entries = std::fs::read_dir(directory).ok()?;
    let is_base = |path: &PathBuf| path.to_string_lossy().ends_with(".clusterserviceversion.yaml");
    let mut bases = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_base);
    let path = bases.next()?;
    if bases.next().is_some() {
        return None;
    }
    // It was found, so a pipe is not waited for.
    let bytes = limits::read_file(&path, &limits::SETTINGS_FILE).ok()?;
    Some(Base {
        path: path.display().to_string(),
        bytes,
    })
}

fn write(directory: &Path, files: &[FixedFile]) -> anyhow::Result<()> {
    for file in files {
        let path = directory.join(&file.path);
        // A link may point to another user's file, and would be replaced by a regular file.
        let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        anyhow::ensure!(
            !is_link,
            "cannot fix {}: it is a symbolic link; fix its target",
            path.display()
        );
        let now = limits::read_file(&path, &limits::BUNDLE_BYTES)
            .with_context(|| format!("reading {} failed", path.display()))?;
        anyhow::ensure!(
            now == file.before.as_bytes(),
            "{} was changed by another program and is not fixed; run the command again",
            path.display()
        );
        olmkit::files::write(&path, file.after.as_bytes())?;
    }
    Ok(())
}

fn print_diff(directory: &Path, files: &[FixedFile]) -> anyhow::Result<()> {
    let mut out = terminal::document();
    for file in files {
        let path = directory.join(&file.path).display().to_string();
        write!(out, "{}", unified(&path, &file.before, &file.after))?;
    }
    Ok(())
}

fn report(source: &Source, fixed: &Fixed, review: &Review, only_diff: bool) {
    let of = |file: &str| UntrustedText::new(&source.directory.join(file).display().to_string()).to_string();
    for fix in fixed.made.iter().filter(|_| !only_diff) {
        note!("fixed: {}: {}", of(&fix.file), fix.title);
    }
    report_others(source, fixed, review);
}

/// Reports the fixes that were not applied.
fn report_others(source: &Source, fixed: &Fixed, review: &Review) {
    let of = |file: &str| UntrustedText::new(&source.directory.join(file).display().to_string()).to_string();
    for NotFixed { fix, reason } in fixed.given_up.iter().chain(&review.given_up) {
        eprintln!("not fixed: {}: {}: {reason}", of(&fix.file), fix.title);
    }
    if !review.possible.is_empty() {
        note!("note: --unsafe-fixes would also apply these; review the result:");
        for fix in &review.possible {
            note!("  {}: {}", of(&fix.file), fix.title);
        }
    }
}
