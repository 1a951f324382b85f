//! A flag with one meaning has the same words in every command.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command, CommandFactory as _};

/// Flags with several meanings, and the number of their descriptions. For all others, the first sentence is equal in all commands.
const EXCEPTIONS: &[(&str, usize)] = &[
    ("base", 2),
    ("binary", 2),
    ("bundle", 2),
    ("catalog", 2),
    ("channel", 5),
    ("channels", 2),
    ("config", 2),
    ("conversion", 2),
    ("defaulting", 2),
    ("delete-operands", 2),
    ("description", 2),
    ("docker", 2),
    ("domain", 2),
    ("dry-run", 5),
    ("force", 3),
    ("from", 2),
    ("icon", 2),
    ("image", 3),
    ("image-pull-policy", 2),
    ("input-dir", 2),
    ("install-mode", 3),
    ("multigroup", 2),
    ("namespace", 5),
    ("namespaced", 2),
    ("olm", 2),
    ("olmv1", 3),
    ("output", 3),
    ("output-dir", 3),
    ("package", 4),
    ("platform", 5),
    ("policy", 3),
    ("programmatic-validation", 2),
    ("release-finalizers", 2),
    ("replaces", 2),
    ("service-account", 2),
    ("skip-range", 2),
    ("skips", 2),
    ("source", 2),
    ("strict", 3),
    ("tag", 2),
    ("to", 2),
];

/// The first sentence of a flag's help.
fn sentence(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let first = help.split(". ").next().unwrap_or_default();
    let first = first.split(" [").next().unwrap_or_default();
    first.trim_end_matches('.').trim().to_owned()
}

/// Collects the descriptions of each visible flag, with the commands that have it.
fn collect(command: &Command, texts: &mut BTreeMap<String, BTreeMap<String, Vec<String>>>) {
    let name = command.get_bin_name().unwrap_or_default();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        if let Some(flag) = argument.get_long()
            && !argument.is_global_set()
            && !["help", "version"].contains(&argument.get_id().as_str())
        {
            let commands = texts.entry(flag.to_owned()).or_default();
            commands.entry(sentence(argument)).or_default().push(name.to_owned());
        }
    }
    super::visible(command).for_each(|sub| collect(sub, texts));
}

#[test]
fn a_flag_has_the_same_words_in_every_command() {
    let mut texts = BTreeMap::new();
    collect(&super::command(crate::Cli::command()), &mut texts);
    let shared = texts
        .values()
        .filter(|texts| texts.values().map(Vec::len).sum::<usize>() > 1);
    assert!(shared.count() > 50, "the flags are not found");
    texts.retain(|_, texts| texts.len() > 1);
    let exceptions: BTreeSet<(&str, usize)> = EXCEPTIONS.iter().copied().collect();
    let found: BTreeSet<(&str, usize)> = texts.iter().map(|(flag, texts)| (flag.as_str(), texts.len())).collect();
    let new: Vec<_> = found
        .difference(&exceptions)
        .map(|(flag, _)| (flag, &texts[*flag]))
        .collect();
    assert!(new.is_empty(), "use the same words, or add an exception: {new:#?}");
    let stale: Vec<_> = exceptions.difference(&found).collect();
    assert!(stale.is_empty(), "remove these exceptions: {stale:?}");
}
