//! Changes of a repository that are checked before they are written.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use olmkit::catalog::Catalog;
use olmkit::catalog::render::reference::{Options as RenderOptions, render_one};
use olmkit::catalog::template;
use olmkit::diagnostics::Severity;
use olmkit::limits;
use olmkit::object::UntrustedText;
use olmkit_scaffold::Tree;
use olmkit_submission::{Changes, Files, Options, Overlay, Platforms, Repository, Waivers};

use super::format::Format;
use super::outcome::Outcome;
use super::suite::Kind;
use super::target::{Target, check};
use super::text::Printer;
use crate::catalog::images::RegistryImages;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

/// Bundles from registries.
pub struct Pulled<'f>(RegistryImages<'f>);

impl<'f> Pulled<'f> {
    pub fn new(flags: &'f RegistryFlags) -> Self {
        Self(RegistryImages::new(flags))
    }
}

impl template::Bundles for Pulled<'_> {
    fn render(&self, reference: &str) -> Result<Catalog, String> {
        render_one(reference, &RenderOptions::default(), &self.0).map_err(|error| error.to_string())
    }
}

/// Changes of a repository.
pub struct Pending<'a> {
    pub root: &'a Path,
    pub files: Arc<dyn Files>,
    pub changes: Changes,
    /// The kind of repository, which selects the rules.
    pub kind: Kind,
}

impl Pending<'_> {
    /// Checks the changed repository in memory, with the rules on the change. Prints errors and warnings. With an error the pipeline
    /// would reject the change, and nothing may be written.
    pub fn is_accepted(&self, target: &Target, platforms: Platforms) -> anyhow::Result<bool> {
        let base = Repository::new(Arc::clone(&self.files));
        let kind = self.kind;
        let head = Repository::new(Arc::new(Overlay::new(Arc::clone(&self.files), self.changes.clone())));
        let options = Options {
            platforms,
            suites: kind.suites(),
            pull_request: true,
            ..Options::default()
        };
        let waivers = Waivers::read(&head);
        let mut outcome = check(target, &head, &options, &waivers);
        let paths: Vec<String> = self.changes.keys().cloned().collect();
        outcome.found.extend(kind.check_change(&head, &base, &paths));
        outcome
            .found
            .retain(|checked| checked.finding.severity <= Severity::Warning);
        if outcome.found.is_empty() {
            return Ok(true);
        }
        let is_accepted = !outcome.fails(Severity::Error);
        let outcome = Outcome {
            not_checked: kind.not_checked(),
            ..outcome
        };
        if let Some(printer) = Printer::new(Format::Text, outcome.bundles, self.root) {
            let mut printer = printer.short(true);
            printer.add(&target.operator, outcome)?;
            printer.end()?;
        }
        Ok(is_accepted)
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::at(self.root).with_largest(limits::CATALOG_FILE.get());
        for (path, content) in &self.changes {
            match content {
                Some(content) => tree.write(path, content.clone()),
                None => tree.remove(path),
            }
        }
        tree
    }

    /// The files that change, each with its action: `create`, `change` or `remove`.
    pub fn files(&self) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
        let report = self.tree().report()?;
        let all = [
            ("create", report.created),
            ("change", report.changed),
            ("remove", report.removed),
        ];
        let named = all
            .into_iter()
            .flat_map(|(verb, paths)| paths.into_iter().map(move |path| (verb, path)));
        Ok(named.collect())
    }

    /// Writes all files, or none. Returns an undo operation.
    pub fn write(&self) -> anyhow::Result<Undo> {
        let mut before = Tree::at(self.root).with_largest(limits::CATALOG_FILE.get());
        for path in self.changes.keys() {
            if self.files.is_file(path) {
                before.write(path, self.files.read(path)?);
            } else {
                before.remove(path);
            }
        }
        self.tree().commit()?;
        Ok(Undo {
            before,
            paths: self.changes.keys().cloned().collect(),
        })
    }
}

/// Names the files that change.
pub fn print(files: &[(&str, PathBuf)]) -> anyhow::Result<()> {
    let out = &mut terminal::output();
    for (verb, path) in files {
        writeln!(out, "{verb} {}", UntrustedText::new(&path.display().to_string()))?;
    }
    Ok(())
}

/// The previous files.
pub struct Undo {
    before: Tree,
    paths: Vec<String>,
}

impl Undo {
    /// Restores them, and removes directories that become empty.
    pub fn run(self) -> anyhow::Result<()> {
        let root = self.before.root().to_owned();
        self.before.commit()?;
        for path in &self.paths {
            for directory in Path::new(path)
                .ancestors()
                .skip(1)
                .filter(|directory| directory.components().count() > 1)
            {
                // Fails if the directory is not empty.
                let _ = std::fs::remove_dir(root.join(directory));
            }
        }
        Ok(())
    }
}
