//! `olmkit update`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit::object::UntrustedText;
use olmkit_scaffold::Updated;

use crate::create::{scaffolded, show};

/// Update a project to the current templates
///
/// Replaces files that you have not changed and merges the new templates into the others. Conflicting lines get git conflict
/// markers: the command lists these files and exits with 1. Renders config/ again unless your code renders more than the
/// scaffold. Needs no network.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit update --dry-run", "olmkit update"])]
pub struct Args {
    /// Show the changes as a diff, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Project directory
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut conflicts = false;
    let code = scaffolded(|| {
        let updated = olmkit_scaffold::update(&args.directory, args.dry_run)?;
        conflicts = !updated.conflicts.is_empty();
        if args.dry_run {
            print!("{}", UntrustedText::lines(&updated.diff));
        } else {
            show(&updated.report);
        }
        comment(&updated);
        Ok(())
    })?;
    Ok(if conflicts { ExitCode::FAILURE } else { code })
}

/// Additional information about the updated files.
fn comment(updated: &Updated) {
    for path in &updated.deleted {
        eprintln!(
            "{}: you have deleted it, so it is not restored; this version would have changed it",
            path.display()
        );
    }
    for path in &updated.left {
        eprintln!(
            "{}: no longer part of the scaffold, and it has your changes: move them to another file and delete this one",
            path.display()
        );
    }
    for path in &updated.conflicts {
        eprintln!(
            "{}: conflict: resolve it between the marks <<<<<<< and >>>>>>>",
            path.display()
        );
    }
    let report = &updated.report;
    if report.created.is_empty() && report.changed.is_empty() && report.removed.is_empty() {
        note!("the project is up to date");
    }
}
