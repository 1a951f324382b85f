//! Selects the parts of a repository to check, operator by operator.

use olmkit_submission::{
    Checked, Operator, Options, Repository, Waivers, check_bundle, check_catalogs, check_operator,
};
use rayon::prelude::*;

use super::outcome::Outcome;
use crate::in_order;
use crate::many::MANY;

/// Parts of one operator to check.
pub struct Target {
    pub operator: String,
    pub bundles: Bundles,
    pub catalogs: Vec<String>,
}

pub enum Bundles {
    All,
    One(Option<String>),
}

impl Bundles {
    /// Their directory names.
    fn versions(&self, operator: &Operator) -> Vec<String> {
        match self {
            Self::All => operator.versions(),
            Self::One(version) => version.iter().cloned().collect(),
        }
    }
}

/// Checks one operator, its bundles and its part of catalogs.
pub fn check(target: &Target, repository: &Repository, options: &Options, waivers: &Waivers) -> Outcome {
    let mut outcome = Outcome::default();
    let mut all = Vec::new();
    if let Some(operator) = repository.operator(&target.operator) {
        outcome.operators = 1;
        all.extend(check_operator(repository, &operator, options));
        let versions = target.bundles.versions(&operator);
        outcome.bundles = versions.len();
        let of_bundles: Vec<Vec<Checked>> = versions
            .par_iter()
            .map(|version| check_bundle(repository, &operator, version, options))
            .collect();
        all.extend(of_bundles.into_iter().flatten());
    }
    outcome.catalogs = target.catalogs.len();
    all.extend(check_catalogs(repository, &target.catalogs, options));
    for checked in all {
        if waivers.waives(checked.check, &target.operator) {
            outcome.waived.push((target.operator.clone(), checked));
        } else {
            outcome.found.push(checked);
        }
    }
    outcome
}

/// Checks targets in parallel, and returns the findings of each in order, as soon as those of its predecessors are
/// done.
pub fn check_each(
    targets: &[Target],
    check: impl Fn(&Target) -> anyhow::Result<Outcome> + Sync,
    mut sink: impl FnMut(&str, Outcome) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let check = |target: &Target| Ok((target.operator.clone(), check(target)?));
    in_order::each(targets, check, |(operator, outcome)| sink(&operator, outcome))
}

/// Number of bundles to check, counted as far as the output format depends on it.
pub fn bundles(targets: &[Target], repository: &Repository) -> usize {
    let mut count = 0;
    for target in targets {
        if count <= MANY
            && let Some(operator) = repository.operator(&target.operator)
        {
            count += target.bundles.versions(&operator).len();
        }
    }
    count
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use olmkit_submission::{Files, Memory, Suite};

    use super::*;

    /// The last operator's bundle appears only after the first operator was reported.
    struct Late {
        files: Memory,
        handed_on: Mutex<Receiver<()>>,
    }

    impl Files for Late {
        fn is_file(&self, path: &str) -> bool {
            self.files.is_file(path)
        }

        fn is_directory(&self, path: &str) -> bool {
            self.files.is_directory(path)
        }

        fn list(&self, path: &str) -> Vec<String> {
            self.files.list(path)
        }

        fn read(&self, path: &str) -> io::Result<Vec<u8>> {
            if path == "operators/c/ci.yaml" {
                let handed_on = self.handed_on.lock().unwrap();
                let waited = handed_on.recv_timeout(Duration::from_secs(60));
                waited.map_err(|_| io::Error::other("the first operator was not handed on"))?;
            }
            self.files.read(path)
        }
    }

    fn names_in_order(sent: &Sender<()>, targets: &[Target], repository: &Repository) -> Vec<String> {
        let options = Options {
            suites: vec![Suite::Community],
            ..Options::default()
        };
        let mut names = Vec::new();
        check_each(
            targets,
            |target| Ok(check(target, repository, &options, &Waivers::default())),
            |name, outcome| {
                assert_eq!(outcome.operators, 1);
                let of_files: Vec<_> = outcome.found.iter().map(|checked| &checked.finding.message).collect();
                assert!(
                    !of_files.iter().any(|text| text.contains("not handed on")),
                    "{of_files:?}"
                );
                names.push(name.to_owned());
                let _ = sent.send(());
                Ok(())
            },
        )
        .unwrap();
        names
    }

    #[test]
    fn operators_are_handed_on_in_order_while_others_are_checked() {
        let (sent, handed_on) = channel();
        let names = ["a", "b", "c"];
        let files: Memory = names
            .map(|name| (format!("operators/{name}/ci.yaml"), "updateGraph: legacy\n".to_owned()))
            .into_iter()
            .collect();
        let late = Late {
            files,
            handed_on: Mutex::new(handed_on),
        };
        let repository = Repository::new(Arc::new(late));
        let targets = names.map(|name| Target {
            operator: name.to_owned(),
            bundles: Bundles::All,
            catalogs: Vec::new(),
        });
        assert_eq!(names_in_order(&sent, &targets, &repository), names);
    }
}
