//! Answers as multisets that can be compared.

use std::collections::BTreeMap;

use olmkit_submission::{Checked, Options, Platforms, Suite};
use serde_json::Value;

/// One line of an answer: check, type, message.
pub type Line = (String, String, String);

/// Options for the exact result of the pipeline.
pub fn strict(suites: &[&str], skip: &[String]) -> Options {
    let suites = suites.iter().map(|name| match *name {
        "common" => Suite::Common,
        "community" => Suite::Community,
        "isv" => Suite::Isv,
        other => panic!("unknown suite {other}"),
    });
    Options {
        strict_compat: true,
        platforms: Platforms::default(),
        skip: skip.to_vec(),
        suites: suites.collect(),
        pull_request: false,
    }
}

/// Strings of a JSON list.
pub fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// This crate's findings, as a sorted list.
pub fn found(checked: &[Checked]) -> Vec<Line> {
    sorted(checked.iter().map(|checked| {
        let message = if checked.is_traceback {
            "TRACEBACK".to_owned()
        } else {
            checked.finding.message.clone()
        };
        let level = checked.finding.severity.as_str();
        (
            format!("{}/{}", checked.suite, checked.check),
            level.to_owned(),
            message,
        )
    }))
}

/// A recorded list of outputs, sorted.
pub fn recorded(outputs: &Value) -> Vec<Line> {
    let outputs = outputs.as_array().into_iter().flatten();
    sorted(outputs.map(|output| {
        let text = |key: &str| output[key].as_str().unwrap().to_owned();
        let message = text("message");
        let message = if message.starts_with("TRACEBACK") {
            "TRACEBACK".to_owned()
        } else {
            message
        };
        (format!("{}/{}", text("suite"), text("check")), text("type"), message)
    }))
}

/// Sorted, with the members of Python sets in one order.
fn sorted(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut lines: Vec<Line> = lines
        .map(|(check, level, message)| (check, level, ordered_set(&message)))
        .collect();
    lines.sort();
    lines
}

/// Python prints sets, and operator-sdk the kinds with removed APIs, in an order that differs from run to run.
fn ordered_set(message: &str) -> String {
    if let Some((text, kinds)) = message.split_once("Migrate the API(s) for ") {
        let mut kinds: Vec<&str> = kinds.split_inclusive("),").collect();
        kinds.sort_unstable();
        return format!("{text}{}", kinds.concat());
    }
    let Some((text, rest)) = message.split_once(": {") else {
        return message.to_owned();
    };
    let Some(set) = rest.strip_suffix('}') else {
        return message.to_owned();
    };
    let mut members: Vec<&str> = set.split(", ").collect();
    members.sort_unstable();
    format!("{text}: {{{}}}", members.join(", "))
}

/// Compares and prints the differences.
#[derive(Default)]
pub struct Tally {
    pub equal: usize,
    pub all: usize,
    pub differences: BTreeMap<String, String>,
}

impl Tally {
    /// Counts one answer. `wanted` has every answer that is right.
    pub fn compare(&mut self, name: &str, own: &[Line], wanted: &[Vec<Line>]) {
        self.all += 1;
        if wanted.iter().any(|wanted| wanted == own) {
            self.equal += 1;
            return;
        }
        let first = wanted.first().cloned().unwrap_or_default();
        let mut text = String::new();
        for (from, other, what) in [(own, first.as_slice(), "too much"), (first.as_slice(), own, "missing")] {
            let mut rest = other.to_vec();
            for line in from {
                match rest.iter().position(|other| other == line) {
                    Some(at) => drop(rest.swap_remove(at)),
                    None => text.push_str(&format!("\n    {what}: {line:?}")),
                }
            }
        }
        self.differences.insert(name.to_owned(), text);
    }

    /// Prints the count, and asserts that only the known ones differ.
    #[track_caller]
    pub fn finish(&self, what: &str, known: &[&str]) {
        println!("{what}: {} of {} equal", self.equal, self.all);
        for (name, difference) in self.differences.iter().take(40) {
            println!("  {name}{difference}");
        }
        let differing: Vec<&str> = self.differences.keys().map(String::as_str).collect();
        assert_eq!(differing, known, "{what}: {} of {} equal", self.equal, self.all);
    }
}
