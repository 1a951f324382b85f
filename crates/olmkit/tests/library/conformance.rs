//! Compares `bundle validate` with the recorded answers of operator-sdk: results, and messages as multisets. The
//! directory with the recordings is `OLMKIT_CORPUS`, else `../shared/corpus` relative to the workspace.

use std::collections::BTreeMap;
use std::path::Path;

use olmkit::bundle::load::{self, Limits, Tree};
use olmkit::validate::{self, Options, Selector};
use serde_json::Value;

use test_support::corpus;

/// Replaces parts that vary between runs of the reference tool: addresses, the order of kinds, of format errors and of
/// map keys.
pub fn normalize(message: &str) -> String {
    let addresses = regex::Regex::new("0x[0-9a-f]+").expect("pattern");
    // Another compressor gives another number of bytes, about one in a hundred.
    let sizes = regex::Regex::new("size=~[0-9.]+ [kM]B").expect("pattern");
    let text = addresses.replace_all(message, "0x").replace("characters", "bytes");
    let mut text = sizes.replace_all(&text, "size=~").into_owned();
    if let Some((head, tail)) = text.split_once("Bundle validation errors: ") {
        let mut parts: Vec<&str> = tail.split(',').collect();
        parts.sort_unstable();
        text = format!("{head}{}", parts.join(","));
    }
    for marker in ["Migrate the API(s) for ", "migrate the API(s) for "] {
        if let Some((head, tail)) = text.clone().split_once(marker) {
            let (list, rest) = tail.split_at(tail.rfind("])").map_or(0, |at| at + 2));
            let mut parts: Vec<&str> = list
                .split("]),")
                .map(|part| part.trim_end_matches("])"))
                .filter(|part| !part.is_empty())
                .collect();
            parts.sort_unstable();
            text = format!("{head}{marker}{}{}", parts.join("|"), rest.trim_start_matches(','));
        }
    }
    if text.contains("error validating object: [") {
        let mut parts: Vec<&str> = text.split(", metadata.").collect();
        parts.sort_unstable();
        text = parts.join(", metadata.");
    }
    text
}

struct Expected {
    failed: bool,
    crashed: bool,
    fatal: Option<String>,
    outputs: Vec<(String, String)>,
}

fn expected(record: &Value) -> Expected {
    let exit = record["exit"].as_i64().unwrap_or(-1);
    let outputs = record["stdout"]["outputs"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut outputs: Vec<_> = outputs
        .iter()
        .map(|output| (text(&output["type"]), normalize(&text(&output["message"]))))
        .collect();
    outputs.sort();
    Expected {
        failed: exit != 0,
        crashed: exit == 2,
        fatal: record["fatal"].as_str().map(normalize),
        outputs,
    }
}

#[derive(Default)]
struct Count {
    runs: usize,
    verdicts: usize,
    messages: usize,
    equal_messages: usize,
    differences: Vec<String>,
}

fn options_of(run: &str, arguments: Option<&Value>) -> Options {
    let mut options = Options::default();
    let mut words: Vec<String> = Vec::new();
    match arguments {
        Some(definition) => {
            let list = definition["args"].as_array().cloned().unwrap_or_default();
            words.extend(list.iter().filter_map(Value::as_str).map(str::to_string));
            options.categories_file = definition["env"]["OPERATOR_BUNDLE_CATEGORIES"]
                .as_str()
                .map(str::to_string);
        }
        None if run == "default" => {}
        None => {
            let (selector, values) = run.split_once(',').unwrap_or((run, ""));
            words.extend(["--select-optional".to_string(), selector.to_string()]);
            if !values.is_empty() {
                words.extend(["--optional-values".to_string(), values.to_string()]);
            }
        }
    }
    for pair in words.chunks(2) {
        match pair {
            [flag, value] if flag == "--select-optional" => {
                options.selector = Selector::parse(value).expect("selector")
            }
            [flag, value] if flag == "--optional-values" => {
                let (key, value) = value.split_once('=').expect("pair");
                options.values.insert(key.to_string(), value.to_string());
            }
            other => panic!("argument {other:?}"),
        }
    }
    options
}

fn compare(name: &str, run: &str, outcome: &validate::Outcome, expected: &Expected, count: &mut Count) {
    count.runs += 1;
    let mut outputs: Vec<_> = outcome
        .outputs()
        .into_iter()
        .map(|output| (output.level.to_string(), normalize(&output.message)))
        .collect();
    outputs.sort();
    if outcome.passed() == expected.failed {
        count.differences.push(format!(
            "{name} [{run}]: verdict: ours passed={}, theirs failed={}",
            outcome.passed(),
            expected.failed
        ));
    } else {
        count.verdicts += 1;
    }
    if expected.crashed {
        return;
    }
    let ours_fatal = outcome.fatal.as_deref().map(normalize);
    if expected.fatal.is_some() || ours_fatal.is_some() {
        count.messages += 1;
        if ours_fatal == expected.fatal {
            count.equal_messages += 1;
        } else {
            count.differences.push(format!(
                "{name} [{run}]: fatal:\n    ours   {ours_fatal:?}\n    theirs {:?}",
                expected.fatal
            ));
        }
        return;
    }
    let mut theirs = expected.outputs.clone();
    count.messages += theirs.len();
    for output in outputs {
        match theirs.iter().position(|other| *other == output) {
            Some(at) => {
                theirs.remove(at);
                count.equal_messages += 1;
            }
            None => {
                count.messages += 1;
                count
                    .differences
                    .push(format!("{name} [{run}]: only ours: {} {}", output.0, output.1));
            }
        }
    }
    for (level, message) in theirs {
        count
            .differences
            .push(format!("{name} [{run}]: only theirs: {level} {message}"));
    }
}

/// A copy of a bundle in which the small files that represent symbolic links are links again.
fn with_link(bundle: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("directory");
    for entry in walkdir::WalkDir::new(bundle).min_depth(1) {
        let entry = entry.expect("entry");
        let target = copy.path().join(entry.path().strip_prefix(bundle).expect("below"));
        if entry.file_type().is_dir() {
            std::fs::create_dir(&target).expect("directory");
            continue;
        }
        let bytes = std::fs::read(entry.path()).expect("file");
        let text = String::from_utf8_lossy(&bytes);
        if bytes.len() < 40 && !text.contains('\n') {
            std::os::unix::fs::symlink(text.trim(), &target).expect("link");
        } else {
            std::fs::write(&target, bytes).expect("file");
        }
    }
    copy
}

fn compare_folder(bundles: &Path, records: &Path, index: &BTreeMap<String, Value>) -> Count {
    std::env::set_current_dir(bundles).expect("working directory");
    let mut names: Vec<String> = std::fs::read_dir(records)
        .expect("recordings")
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_string_lossy()
                .strip_suffix(".json")
                .map(str::to_string)
        })
        .collect();
    names.sort();
    let mut count = Count::default();
    for name in names {
        let text = std::fs::read_to_string(records.join(format!("{name}.json"))).expect("recording");
        let runs: BTreeMap<String, Value> = serde_json::from_str(&text).expect("recording");
        let change = index
            .get(&name)
            .and_then(|entry| entry["change"].as_str())
            .unwrap_or_default();
        let linked = change.contains("symbolic link").then(|| with_link(Path::new(&name)));
        let directory = linked.as_ref().map_or(Path::new(&name), |directory| directory.path());
        let tree = Tree::from_dir(directory, Limits::default()).expect("bundle");
        let reading = load::read(tree.clone(), &name);
        for (run, record) in runs {
            let definition = index.get(&name).and_then(|entry| entry["runs"].get(&run));
            let argument = definition.and_then(|definition| definition["argument"].as_str());
            let options = options_of(&run, definition);
            let outcome = match argument {
                Some(argument) => validate::validate(&load::read(tree.clone(), argument), &options),
                None => validate::validate(&reading, &options),
            };
            compare(&name, &run, &outcome, &expected(&record), &mut count);
        }
    }
    count
}

#[test]
fn verdicts_and_messages_are_those_of_operator_sdk() {
    let Some(corpus) = corpus("").and_then(|folder| folder.canonicalize().ok()) else {
        return;
    };
    let micro_index = std::fs::read_to_string(corpus.join("micro/index.json")).expect("index");
    let micro_index: BTreeMap<String, Value> = serde_json::from_str(&micro_index).expect("index");
    let folders = [
        (
            "bundles",
            compare_folder(
                &corpus.join("bundles"),
                &corpus.join("expected/validate"),
                &BTreeMap::new(),
            ),
        ),
        (
            "micro",
            compare_folder(&corpus.join("micro"), &corpus.join("micro/expected"), &micro_index),
        ),
    ];
    let (mut wrong_verdicts, mut messages, mut equal) = (0, 0, 0);
    for (folder, count) in folders {
        for difference in &count.differences {
            println!("{folder}/{difference}");
        }
        println!(
            "{folder}: {} runs, {} verdicts equal, {} of {} messages equal",
            count.runs, count.verdicts, count.equal_messages, count.messages
        );
        wrong_verdicts += count.runs - count.verdicts;
        messages += count.messages;
        equal += count.equal_messages;
    }
    assert_eq!(wrong_verdicts, 0, "verdicts differ");
    assert!(equal * 1000 >= messages * 995, "{equal} of {messages} messages equal");
}
