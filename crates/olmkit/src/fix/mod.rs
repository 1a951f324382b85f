//! Fixes of findings from validation and scorecard: edits a bundle's YAML files in place.
//!
//! A fix is kept only if it is verified: the file contains its previous value plus the fix, with all its comments; the
//! bundle has no new finding; and no result of operator-sdk is worse.

mod annotations;
mod check;
mod descriptors;
mod examples;
mod facts;
mod resources;
mod security;
mod source;
mod spelling;
mod versions;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::bundle::load::{Entry, Tree};
use check::Verdict;
use facts::Facts;

pub use crate::object::Document;
pub use source::{Base, FixedBase};

/// Selects fixes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Also those that guess: examples, resources, security contexts, names that are only similar.
    pub unsafe_fixes: bool,
    /// Also those of findings that only scorecard reports: descriptors and resources.
    pub scorecard: bool,
}

/// The flags that fix findings of a rule, or `None` if the rule has no fix.
#[must_use]
pub fn flags(rule: &str) -> Option<&'static str> {
    match rule {
        "CSV-17" | "FMT-7" => Some("`bundle validate --fix`"),
        "CAP-1" | "CAT-1" | "FMT-6" => {
            Some("`bundle validate --fix`, with `--unsafe-fixes` if the new value is a guess")
        }
        "CSV-10" | "POD-4" => Some("`bundle validate --fix --unsafe-fixes`"),
        "SC-7" | "SC-8" => Some("`scorecard --fix`"),
        "SC-5" => Some("`scorecard --fix --unsafe-fixes`"),
        _ => None,
    }
}

/// A fix that was applied, or could be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fix {
    /// The file, relative to the bundle.
    pub file: String,
    /// Its effect.
    pub title: String,
    /// True if it needs no second look.
    pub is_safe: bool,
}

/// A fix that was not applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotFixed {
    /// The fix.
    pub fix: Fix,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a fix was not applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// The file has a form that cannot be changed in place.
    Form(&'static str),
    /// The value has a form that cannot be changed in place.
    Value,
    /// The bundle would get a finding, of this rule or scorecard test.
    NewFinding(String),
    /// operator-sdk or a scorecard test would fail.
    Worse,
    /// This run has applied the maximum number of fixes.
    TooMany,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Form(reason) => write!(formatter, "the file cannot be changed in place: {reason}"),
            Reason::Value => formatter.write_str("the value cannot be changed without rewriting other lines"),
            Reason::NewFinding(rule) => write!(formatter, "the bundle would get a finding of {rule}"),
            Reason::Worse => formatter.write_str("operator-sdk or scorecard would reject the bundle"),
            Reason::TooMany => write!(
                formatter,
                "one run makes {MOST_GROUPS} fixes at most; run the command again"
            ),
        }
    }
}

/// A file that fixes change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedFile {
    /// The file, relative to the bundle.
    pub path: String,
    /// Its previous content.
    pub before: String,
    /// Its content with the fixes.
    pub after: String,
}

/// Result of fixing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixed {
    /// The files that change.
    pub files: Vec<FixedFile>,
    /// The fixes in them.
    pub made: Vec<Fix>,
    /// Fixes for which [`Options::unsafe_fixes`] must be set.
    pub only_unsafe: Vec<Fix>,
    /// Fixes that were not applied.
    pub given_up: Vec<NotFixed>,
    /// The applied fixes, with their changes.
    proposals: Vec<Proposal>,
}

/// A change that a fix consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// Removes trailing spaces.
    StripBlanks,
    /// Adds a key to a map.
    Add { map: String, key: String, value: Value },
    /// Adds items to the list at a key of a map.
    Append {
        map: String,
        key: String,
        items: Vec<Value>,
    },
    /// Replaces a string.
    Replace { at: String, text: String },
}

/// A fix with its changes. Fixes of one group are applied together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Proposal {
    fix: Fix,
    group: String,
    actions: Vec<Action>,
}

impl Proposal {
    fn apply(&self, document: &mut Document) -> Option<()> {
        let mut changed = document.clone();
        for action in &self.actions {
            match action {
                Action::StripBlanks => changed.strip_blanks()?,
                Action::Add { map, key, value } => changed.add(map, key, value)?,
                Action::Append { map, key, items } => changed.append(map, key, items)?,
                Action::Replace { at, text } => changed.replace(at, text)?,
            }
        }
        *document = changed;
        Some(())
    }
}

/// Maximum number of fix groups in one run: each is tried on copies of the files. A second run makes the next ones.
const MOST_GROUPS: usize = 500;

/// Finds the fixes of a bundle. `root` is its name in messages. Writes nothing.
#[must_use]
pub fn fix(tree: &Tree, root: &str, options: Options) -> Fixed {
    let facts = Facts::new(tree, root);
    let mut proposals = blanks(tree);
    proposals.extend(annotations::propose(&facts));
    proposals.extend(spelling::propose(&facts));
    proposals.extend(versions::propose(&facts));
    let examples = examples::propose(&facts);
    if options.scorecard {
        proposals.extend(descriptors::propose(&facts));
        proposals.extend(resources::propose(&facts));
    }
    proposals.extend(examples);
    proposals.extend(security::propose(&facts));
    let (wanted, left): (Vec<_>, Vec<_>) = proposals
        .into_iter()
        .partition(|proposal| options.unsafe_fixes || proposal.fix.is_safe);
    let mut fixed = Fixed {
        only_unsafe: left.into_iter().map(|proposal| proposal.fix).collect(),
        ..Fixed::default()
    };
    if wanted.is_empty() {
        return fixed;
    }
    let groups = in_place(wanted, &mut Documents::new(tree), &mut fixed);
    let mut documents = Documents::new(tree);
    make_proven(groups, &mut documents, root, Verdict::new(tree, root), &mut fixed);
    fixed.files = documents.changed();
    fixed.given_up.sort();
    fixed
}

/// The groups of fixes that can be made in place. The others are dropped.
fn in_place(wanted: Vec<Proposal>, documents: &mut Documents<'_>, fixed: &mut Fixed) -> Vec<Vec<Proposal>> {
    let mut groups: Vec<Vec<Proposal>> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for proposal in wanted {
        let number = *numbers.entry(proposal.group.clone()).or_insert(groups.len());
        match groups.get_mut(number) {
            Some(group) => group.push(proposal),
            None => groups.push(vec![proposal]),
        }
    }
    let beyond = groups.split_off(groups.len().min(MOST_GROUPS));
    fixed.give_up(beyond.into_iter().flatten(), &Reason::TooMany);
    groups.retain(|group| {
        let mut trial = documents.clone();
        let done = group.iter().try_for_each(|proposal| trial.apply(proposal));
        match &done {
            Ok(()) => *documents = trial,
            Err(reason) => fixed.give_up(group.iter().cloned(), reason),
        }
        done.is_ok()
    });
    groups
}

impl Fixed {
    fn give_up(&mut self, proposals: impl Iterator<Item = Proposal>, reason: &Reason) {
        self.given_up.extend(proposals.map(|proposal| NotFixed {
            fix: proposal.fix,
            reason: reason.clone(),
        }));
    }
}

/// Makes the verified groups of fixes. Rejected ones are tried again after others, so that a second run finds nothing
/// to do.
fn make_proven(
    mut groups: Vec<Vec<Proposal>>,
    documents: &mut Documents<'_>,
    root: &str,
    mut before: Verdict,
    fixed: &mut Fixed,
) {
    loop {
        let made = fixed.made.len();
        let left = make_halves(groups, documents, root, &mut before, fixed);
        if left.is_empty() || fixed.made.len() == made {
            for (group, reason) in left {
                fixed.give_up(group.into_iter(), &reason);
            }
            return;
        }
        groups = left.into_iter().map(|(group, _)| group).collect();
    }
}

/// Makes all groups, or otherwise those of each half. Returns the rejected ones. The number of validations is a small
/// multiple of the number of rejected groups.
fn make_halves(
    groups: Vec<Vec<Proposal>>,
    documents: &mut Documents<'_>,
    root: &str,
    before: &mut Verdict,
    fixed: &mut Fixed,
) -> Vec<(Vec<Proposal>, Reason)> {
    let mut trial = documents.clone();
    let done = groups.iter().flatten().try_for_each(|proposal| trial.apply(proposal));
    let after = done.map(|()| Verdict::new(&trial.tree(), root));
    let after = after.and_then(|after| match after.worse_than(before) {
        Some(reason) => Err(reason),
        None => Ok(after),
    });
    let reason = match after {
        Ok(after) => {
            for proposal in groups.into_iter().flatten() {
                fixed.made.push(proposal.fix.clone());
                fixed.proposals.push(proposal);
            }
            *documents = trial;
            *before = after;
            return Vec::new();
        }
        Err(reason) => reason,
    };
    if groups.len() < 2 {
        return groups.into_iter().map(|group| (group, reason.clone())).collect();
    }
    let mut first = groups;
    let second = first.split_off(first.len() / 2);
    let mut left = make_halves(first, documents, root, before, fixed);
    left.extend(make_halves(second, documents, root, before, fixed));
    left
}

/// The changed files.
#[derive(Debug, Clone)]
struct Documents<'t> {
    original: &'t Tree,
    changed: BTreeMap<String, Document>,
}

impl<'t> Documents<'t> {
    fn new(original: &'t Tree) -> Self {
        Self {
            original,
            changed: BTreeMap::new(),
        }
    }

    fn apply(&mut self, proposal: &Proposal) -> Result<(), Reason> {
        let path = &proposal.fix.file;
        let mut document = match self.changed.get(path) {
            Some(document) => document.clone(),
            None => Document::try_read(self.original.file(path).unwrap_or_default()).map_err(Reason::Form)?,
        };
        proposal.apply(&mut document).ok_or(Reason::Value)?;
        self.changed.insert(path.clone(), document);
        Ok(())
    }

    /// The bundle with the changes.
    fn tree(&self) -> Tree {
        let mut tree = self.original.clone();
        for (path, document) in &self.changed {
            tree.insert(path, document.text().as_bytes().to_vec());
        }
        tree
    }

    fn changed(&self) -> Vec<FixedFile> {
        let file = |(path, document): (&String, &Document)| {
            let before = std::str::from_utf8(self.original.file(path)?).ok()?.to_owned();
            let after = document.text().to_owned();
            (before != after).then(|| FixedFile {
                path: path.clone(),
                before,
                after,
            })
        };
        self.changed.iter().filter_map(file).collect()
    }
}

/// Trailing spaces, and a missing line end at the end of a file.
fn blanks(tree: &Tree) -> Vec<Proposal> {
    let is_yaml = |path: &str| path.ends_with(".yaml") || path.ends_with(".yml");
    let mut proposals = Vec::new();
    for (path, entry) in tree.walk("") {
        let Entry::File(bytes) = entry else { continue };
        // The carriage returns of such a file are part of its line ends.
        if bytes.windows(2).any(|pair| pair == b"\r\n") {
            continue;
        }
        let is_clean = bytes.ends_with(b"\n")
            && bytes
                .split(|byte| *byte == b'\n')
                .all(|line| !line.last().is_some_and(|last| b" \t\r".contains(last)));
        if !is_yaml(&path) || is_clean || bytes.is_empty() {
            continue;
        }
        let can = Document::read(bytes).is_some_and(|mut document| document.strip_blanks().is_some());
        if can {
            let title = "remove trailing spaces, end the file with a line end";
            proposals.push(proposal(
                &path,
                title,
                true,
                &format!("blanks {path}"),
                vec![Action::StripBlanks],
            ));
        }
    }
    proposals
}

fn proposal(file: &str, title: impl Into<String>, is_safe: bool, group: &str, actions: Vec<Action>) -> Proposal {
    Proposal {
        fix: Fix {
            file: file.to_owned(),
            title: title.into(),
            is_safe,
        },
        group: group.to_owned(),
        actions,
    }
}
