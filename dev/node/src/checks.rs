//! Checks that print one line each and are counted, and the comparison of all objects in the cluster.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::run::{Run, colored};

/// Objects that Kubernetes and OLM create and delete at any time.
const SHORT_LIVED: [&str; 10] = [
    "events",
    "leases",
    "endpoints",
    "endpointslices",
    "componentstatuses",
    "packagemanifests",
    "replicasets",
    "pods",
    "controllerrevisions",
    "ipaddresses",
];

/// Lines of a failed check's log that the terminal shows.
const SHOWN_LINES: usize = 60;

/// The checks of a run.
pub struct Checks<'a> {
    pub run: &'a Run,
    /// The flow whose checks run.
    pub flow: String,
    command: &'static str,
    passed: usize,
    failed: usize,
}

impl<'a> Checks<'a> {
    /// `command` and a flow's name repeat that flow.
    pub fn new(run: &'a Run, command: &'static str) -> Self {
        Self {
            run,
            flow: String::new(),
            command,
            passed: 0,
            failed: 0,
        }
    }

    /// Runs a check and prints its result. If it fails, prints the end of its log and its error.
    pub fn check(&mut self, description: &str, check: impl FnOnce() -> anyhow::Result<()>) {
        let path = self.log_file(description);
        let start = Instant::now();
        self.run.log.set(File::create(&path).ok());
        let result = check();
        if let Err(error) = &result {
            self.run.log.write(&format!("error: {error:#}"));
        }
        self.run.log.set(None);
        let seconds = start.elapsed().as_secs();
        if result.is_ok() {
            self.passed += 1;
            println!("{}      {description} ({seconds}s)", colored("32", "ok"));
            return;
        }
        self.failed += 1;
        println!("{}  {description} ({seconds}s)", colored("31", "FAILED"));
        let log = fs::read(&path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        for line in log.lines().skip(log.lines().count().saturating_sub(SHOWN_LINES)) {
            println!("        {line}");
        }
        println!(
            "        run it alone: {}{}\n        log: {}",
            self.command,
            self.flow,
            path.display()
        );
    }

    fn log_file(&self, description: &str) -> PathBuf {
        let plain = |character: char| {
            if character.is_ascii_alphanumeric() {
                character
            } else {
                '-'
            }
        };
        let name: String = format!("{} {description}", self.flow).chars().map(plain).collect();
        self.run.results.join(format!("{name}.log"))
    }

    /// Prints the counts, and returns true if all checks passed.
    pub fn summary(&self, title: &str) -> bool {
        println!(
            "\n{title}, {} s:\n{} passed, {} failed",
            self.run.since(),
            self.passed,
            self.failed
        );
        self.failed == 0
    }
}

/// Stops the node when it is dropped and when a signal ends this program, unless `KEEP` is set.
pub struct NodeUp<'a> {
    run: &'a Run,
    /// Held until the node has stopped.
    _lock: File,
}

impl<'a> NodeUp<'a> {
    /// Starts the node.
    ///
    /// # Errors
    /// If another process runs checks on the node, or the node does not start.
    pub fn start(run: &'a Run) -> anyhow::Result<Self> {
        let state = run.root.join("dev/.state");
        fs::create_dir_all(&state)?;
        let lock = File::create(state.join("checks.lock"))?;
        lock.try_lock()
            .context("another process runs checks on the node: wait until it has ended")?;
        let mut signals =
            signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])?;
        let script = run.root.join("dev/cluster/cluster");
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                stop(&script);
                std::process::exit(128 + signal);
            }
        });
        let node = Self { run, _lock: lock };
        // The servers run for half an hour. Fewer garbage collections save CPU time.
        run.script("dev/cluster/cluster").arg("up").env("GOGC", "400").show()?;
        Ok(node)
    }
}

impl Drop for NodeUp<'_> {
    fn drop(&mut self) {
        stop(&self.run.root.join("dev/cluster/cluster"));
    }
}

fn stop(script: &std::path::Path) {
    if env::var_os("KEEP").is_none_or(|keep| keep.is_empty()) {
        // The script reports its own errors.
        let _ = std::process::Command::new(script).arg("down").status();
    }
}

/// Shuffles the words by a seed. 0 keeps their order. The generator is part of this file, so the order does not
/// depend on the version of a library.
pub fn shuffled<'a>(seed: u64, words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.to_vec();
    let mut state = seed;
    if seed != 0 {
        for at in (1..words.len()).rev() {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            let other = usize::try_from(state >> 16).unwrap_or_default() % (at + 1);
            words.swap(at, other);
        }
    }
    words
}

/// All objects of the cluster except short-lived ones.
pub type Inventory = BTreeSet<String>;

/// Lists the objects: kind, namespace and name.
pub fn inventory(run: &Run) -> anyhow::Result<Inventory> {
    let kinds = run.kubectl("api-resources --verbs=list -o name")?;
    let lasting = |kind: &&str| !SHORT_LIVED.contains(&kind.split('.').next().unwrap_or_default());
    let kinds: Vec<&str> = kinds.lines().filter(lasting).collect();
    let columns = "custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name";
    let list = run.kubectl(&format!(
        "get {} -A --no-headers --ignore-not-found -o {columns}",
        kinds.join(",")
    ))?;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(list.lines().map(words).collect())
}

/// Fails if objects exist that did not exist before. Names them, and who created the first ones.
pub fn same_inventory(run: &Run, before: &Inventory) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(180);
    loop {
        let now = inventory(run)?;
        let left: Vec<&String> = now.difference(before).collect();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= end {
            let lines: Vec<&str> = left.iter().map(|line| line.as_str()).collect();
            run.log.write(&format!("left behind:\n{}", lines.join("\n")));
            for line in lines.iter().take(10) {
                describe(run, line);
            }
            ensure!(left.is_empty(), "left behind: {}", lines.join(", "));
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// Logs the metadata of an object of an inventory.
fn describe(run: &Run, line: &str) {
    if let [kind, namespace, name] = line.split(' ').collect::<Vec<_>>().as_slice() {
        let namespace = if *namespace == "<none>" { "default" } else { namespace };
        let words = format!("get {kind} {name} -n {namespace} -o json --show-managed-fields");
        let object: Value = run
            .kubectl(&words)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        run.log
            .write(&json!({"kind": object.get("kind"), "metadata": object.get("metadata")}).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_repeats_with_its_seed() {
        let words = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(shuffled(0, &words), words);
        assert_eq!(shuffled(7, &words), shuffled(7, &words));
        assert_ne!(shuffled(7, &words), shuffled(8, &words));
        let mut sorted = shuffled(7, &words);
        sorted.sort_unstable();
        assert_eq!(sorted, words);
    }
}
