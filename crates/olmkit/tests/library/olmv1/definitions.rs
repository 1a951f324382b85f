//! Checks if OLM v1 allows replacing CRDs by newer ones.

use std::collections::BTreeMap;

use olmkit::bundle::load::Tree;
use olmkit::crd::upgrade;
use olmkit::olmv1::{self, Bundle, Options};
use serde_json::Value;
use test_support::corpus;

use super::{count, lines, made_up, real};

/// The definitions of a bundle as OLM v1 applies them.
fn definitions(tree: &Tree) -> BTreeMap<String, Value> {
    let bundle = Bundle::read(tree).unwrap();
    let mut options = Options::new("install-ns");
    let modes = bundle.install_modes();
    if !modes.has(olmkit::olmv1::InstallMode::AllNamespaces) {
        let own = modes.has(olmkit::olmv1::InstallMode::OwnNamespace);
        options.config = serde_json::json!({"watchNamespace": if own { "install-ns" } else { "watch-ns" }});
    }
    let objects = olmv1::render(&bundle, &options);
    let definitions = match objects {
        Ok(objects) => objects,
        Err(_) => bundle
            .definitions
            .into_iter()
            .map(|object| Value::clone(&object.value))
            .collect(),
    };
    definitions
        .into_iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .map(|object| {
            (
                object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                object,
            )
        })
        .collect()
}

#[derive(Default)]
struct Counts {
    pairs: usize,
    definitions: usize,
    messages: usize,
    wrong: Vec<String>,
    /// Messages that differ only in their wording.
    texts: Vec<String>,
}

/// Version, property and name of the check.
fn head(message: &str) -> String {
    let end = [": unhandled: ", ": oneOf: "]
        .iter()
        .find_map(|name| Some(message.find(name)? + name.len()));
    message.get(..end.unwrap_or(message.len())).unwrap().to_owned()
}

/// Names of required fields come in any order.
fn ordered(message: &str) -> String {
    let Some((head, names)) = message.split_once("new required fields: [") else {
        return message.to_owned();
    };
    let mut names: Vec<&str> = names.trim_end_matches(']').split(' ').collect();
    names.sort_unstable();
    format!("{head}new required fields: [{}]", names.join(" "))
}

impl Counts {
    fn compare(&mut self, label: &str, expected: &Value, old: &Tree, new: &Tree) {
        self.pairs += 1;
        let (old, new) = (definitions(old), definitions(new));
        let mut blocked = false;
        for entry in expected["crds"].as_array().unwrap() {
            self.definitions += 1;
            let name = entry["crd"].as_str().unwrap();
            let (Some(now), before) = (new.get(name), old.get(name)) else {
                self.wrong.push(format!("{label}: {name} is not there"));
                continue;
            };
            let problems = before.map_or_else(Vec::new, |before| {
                upgrade::check(before, now, &upgrade::stored_versions(before)).unwrap()
            });
            blocked |= !problems.is_empty();
            let theirs = entry["messages"].as_array().into_iter().flatten();
            let mut theirs: Vec<String> = theirs.map(|message| ordered(message.as_str().unwrap())).collect();
            let mut ours: Vec<String> = problems.iter().map(ToString::to_string).collect();
            self.messages += theirs.len();
            theirs.sort();
            ours.sort();
            if entry["blocked"] == problems.is_empty() {
                self.wrong
                    .push(format!("{label}: {name}: {ours:?} instead of {}", entry["blocked"]));
            }
            let heads = |messages: &[String]| {
                let mut heads: Vec<String> = messages.iter().map(|message| head(message)).collect();
                heads.sort();
                heads
            };
            if heads(&theirs) != heads(&ours) {
                let (theirs, ours) = (heads(&theirs), heads(&ours));
                let missing: Vec<_> = theirs.iter().filter(|one| !ours.contains(one)).take(5).collect();
                let more: Vec<_> = ours.iter().filter(|one| !theirs.contains(one)).take(5).collect();
                self.wrong
                    .push(format!("{label}: {name}\n  OLM v1: {missing:#?}\n  olmkit: {more:#?}"));
            }
            for message in &theirs {
                // Long ones are cut in the recording.
                let cut = message.find('…').and_then(|end| message.get(..end));
                let same = |ours: &&String| cut.map_or(*ours == message, |cut| ours.starts_with(cut));
                if !ours.iter().any(|ours| same(&ours)) {
                    let near = ours.iter().find(|ours| head(ours) == head(message));
                    self.texts
                        .push(format!("{label}\n  OLM v1: {message}\n  olmkit: {near:?}"));
                }
            }
        }
        if expected["blocked"] != blocked {
            self.wrong.push(format!("{label}: blocked is {blocked}"));
        }
    }

    fn report(&self, what: &str) {
        println!(
            "{what}: {} definitions of {} pairs; {} of {} messages equal to the letter",
            self.definitions,
            self.pairs,
            self.messages - self.texts.len(),
            self.messages
        );
        for text in self.texts.iter().take(12) {
            println!("{}", text.chars().take(1500).collect::<String>());
        }
        count(what, self.pairs, &self.wrong);
    }
}

#[test]
fn real_upgrades_are_blocked_as_in_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let mut counts = Counts::default();
    for line in lines(&root.join("crds.jsonl")) {
        let Some(old) = real(&root, &line, "old", "inputOld") else {
            continue;
        };
        let Some(new) = real(&root, &line, "new", "inputNew") else {
            continue;
        };
        let label = format!("{} -> {}", line["old"], line["new"]);
        counts.compare(&label, &line, &old, &new);
    }
    counts.report("upgrades of real bundles");
    assert!(counts.pairs >= 28, "{}", counts.pairs);
    // docs/reference/compatibility.md has the reason: go-cmp compares long strings character by character.
    let known = ["open-liberty-certified/1.4.4", "stackable-superset-operator/24.7.0"];
    for text in &counts.texts {
        assert!(known.iter().any(|name| text.contains(name)), "{text}");
    }
}

#[test]
fn made_up_upgrades_are_blocked_as_in_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let mut counts = Counts::default();
    for line in lines(&root.join("synthetic-crds.jsonl")) {
        let name = line["name"].as_str().unwrap();
        counts.compare(name, &line["expected"], &made_up(&line["old"]), &made_up(&line["new"]));
    }
    counts.report("made-up upgrades");
    assert_eq!((counts.pairs, counts.texts.len()), (54, 0));
}
