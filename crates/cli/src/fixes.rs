//! `--fix` of `bundle validate`, `scorecard` and `repo check`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::fix::{Fixed, Options, fix};
use olmkit::object::UntrustedText;
use olmkit::validate::source::Source;
use similar::TextDiff;

use crate::terminal;

// What to repair. No doc comment: the commands that flatten this would show it as their own help.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FixFlags {
    /// Repair what can be repaired: edits YAML files in place, keeping comments and layout
    #[arg(long, help_heading = "Fixes")]
    fix: bool,
    /// Also make fixes that guess: examples, resources, security contexts, names that are only similar
    #[arg(long, help_heading = "Fixes")]
    unsafe_fixes: bool,
    /// Print what --fix would change as a unified diff and write nothing; exit code 1 if there is something
    #[arg(long, help_heading = "Fixes")]
    diff: bool,
}

impl FixFlags {
    /// Whether there is something to do.
    pub fn is_wanted(&self) -> bool {
        self.fix || self.diff || self.unsafe_fixes
    }

    /// Makes the fixes in all bundles. `Some` ends the command: only the difference was asked for, or the flags make no sense.
    pub fn run(&self, sources: &[Source]) -> anyhow::Result<Option<ExitCode>> {
        if !self.fix && !self.diff {
            if self.unsafe_fixes {
                eprintln!("Error: --unsafe-fixes needs --fix or --diff");
                return Ok(Some(ExitCode::from(2)));
            }
            return Ok(None);
        }
        if let Some(image) = sources.iter().find_map(|source| source.image.as_ref()) {
            anyhow::bail!("cannot fix {image}: an image cannot be changed; pass the directory it is built from");
        }
        let options = Options {
            unsafe_fixes: self.unsafe_fixes,
        };
        let mut changes = false;
        for source in sources {
            let reading = source.read()?;
            let fixed = fix(&reading.bundle.tree, &source.shown, options);
            changes |= !fixed.files.is_empty();
            if self.diff {
                print_diff(&source.directory, &fixed)?;
            } else {
                write(&source.directory, &fixed)?;
            }
            report(source, &fixed, self.diff);
        }
        Ok(match (self.diff, changes) {
            (false, _) => None,
            (true, true) => Some(ExitCode::FAILURE),
            (true, false) => Some(ExitCode::SUCCESS),
        })
    }
}

fn write(directory: &Path, fixed: &Fixed) -> anyhow::Result<()> {
    for file in &fixed.files {
        let path = directory.join(&file.path);
        // A link may lead to a file of others, and would become a file of its own.
        let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        anyhow::ensure!(
            !is_link,
            "cannot fix {}: it is a symbolic link; fix the file it leads to",
            path.display()
        );
        let now = std::fs::read(&path).with_context(|| format!("reading {} failed", path.display()))?;
        anyhow::ensure!(
            now == file.before.as_bytes(),
            "{} has changed meanwhile and was left alone; run the command again",
            path.display()
        );
        olmkit::files::write(&path, file.after.as_bytes())?;
    }
    Ok(())
}

fn print_diff(directory: &Path, fixed: &Fixed) -> anyhow::Result<()> {
    let mut out = terminal::document();
    for file in &fixed.files {
        let path = directory.join(&file.path).display().to_string();
        let diff = TextDiff::from_lines(&file.before, &file.after);
        write!(out, "{}", diff.unified_diff().header(&path, &path))?;
    }
    Ok(())
}

fn report(source: &Source, fixed: &Fixed, only_diff: bool) {
    let of = |file: &str| UntrustedText::new(&source.directory.join(file).display().to_string()).to_string();
    for fix in fixed.made.iter().filter(|_| !only_diff) {
        note!("fixed: {}: {}", of(&fix.file), fix.title);
    }
    for fix in &fixed.given_up {
        eprintln!(
            "not fixed: {}: {}: the file cannot be changed in place, the bundle would get a new finding, or another run makes it",
            of(&fix.file),
            fix.title
        );
    }
    if !fixed.only_unsafe.is_empty() {
        note!("note: --unsafe-fixes makes these too, which need a look afterwards:");
        for fix in &fixed.only_unsafe {
            note!("  {}: {}", of(&fix.file), fix.title);
        }
    }
}
