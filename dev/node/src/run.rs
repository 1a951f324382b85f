//! A run: the directories, the cluster, the programs, and the words that all steps share.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::command::{Invocation, Log};

/// The name of the operator's package.
pub const PACKAGE: &str = "memcached-operator";

/// The cluster that a run uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cluster {
    /// The node of `dev/cluster`.
    Local,
    /// The cluster of the current kubectl context.
    Current,
}

/// The directories, the cluster and the programs of a run.
pub struct Run {
    pub root: PathBuf,
    /// `dev/.state/e2e`: logs and compared files.
    pub results: PathBuf,
    /// `dev/.state/story`: bundles and catalogs.
    pub work: PathBuf,
    /// Directory with the pinned Go programs.
    pub cache: PathBuf,
    pub cluster: Cluster,
    /// Registry that this machine and the cluster reach.
    pub registry: String,
    pub busybox: String,
    pub olmkit: PathBuf,
    pub operator: PathBuf,
    /// The caller named a program in `OLMKIT`, so nothing is built.
    pub given: bool,
    pub log: Log,
    begin: Instant,
}

impl Run {
    /// Reads the settings from the environment: `CLUSTER`, `REGISTRY`, `BUSYBOX_IMAGE`, `OLMKIT`, `OPERATOR`, `OLMKIT_DEV_CACHE`.
    pub fn new() -> anyhow::Result<Run> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here
            .ancestors()
            .nth(2)
            .context("the crate has no repository")?
            .to_owned();
        let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let (cluster, registry, busybox) = match text("CLUSTER").as_deref() {
            // The local node reaches no other registry.
            None | Some("local") => (
                Cluster::Local,
                "localhost:5000".to_owned(),
                "docker.io/dev/busybox:1".to_owned(),
            ),
            Some("current") => {
                let registry = text("REGISTRY").context(
                    "CLUSTER=current needs REGISTRY=host/path, a registry that this machine and the cluster's nodes reach",
                )?;
                let busybox = text("BUSYBOX_IMAGE").unwrap_or_else(|| "docker.io/library/busybox:stable".to_owned());
                (Cluster::Current, registry, busybox)
            }
            Some(other) => bail!("CLUSTER is 'local' or 'current', not '{other}'"),
        };
        let cache = match (text("OLMKIT_DEV_CACHE"), text("XDG_CACHE_HOME"), text("HOME")) {
            (Some(cache), ..) => PathBuf::from(cache),
            (None, Some(cache), _) => Path::new(&cache).join("olmkit"),
            (None, None, home) => Path::new(&home.unwrap_or_default()).join(".cache/olmkit"),
        };
        let state = root.join("dev/.state");
        let log = Log::default();
        let printed = |target: &str| -> anyhow::Result<PathBuf> {
            let make = Invocation::new(&log, "make")
                .words("-s --no-print-directory")
                .arg(target);
            Ok(root.join(make.directory(&root).run()?))
        };
        let run = Run {
            results: state.join("e2e"),
            work: state.join("story"),
            cache,
            cluster,
            registry,
            busybox,
            olmkit: printed("print-olmkit")?,
            operator: printed("print-operator")?,
            given: text("OLMKIT").is_some(),
            log,
            begin: Instant::now(),
            root,
        };
        fs::create_dir_all(&run.results)?;
        Ok(run)
    }

    /// Builds the given sets of Go programs and, unless the caller named them, olmkit and the operator.
    pub fn build(&self, sets: &[&str]) -> anyhow::Result<()> {
        if self.given {
            return self.script("dev/tools/build.sh").args(sets).show();
        }
        let make = ["--", "make", "-s", "build"];
        self.program("dev/beside.sh").args(sets).args(make).show()
    }

    /// Seconds since the start.
    pub fn since(&self) -> u64 {
        self.begin.elapsed().as_secs()
    }

    /// A program on this machine, in the repository's directory.
    pub fn program(&self, program: &str) -> Invocation {
        Invocation::new(&self.log, program)
            .directory(&self.root)
            .env("OLMKIT_IMAGE_STORE", self.root.join("dev/.state/images"))
    }

    /// A program of the repository.
    pub fn script(&self, path: &str) -> Invocation {
        self.program(&self.root.join(path).to_string_lossy())
            .env("OLMKIT", &self.olmkit)
    }

    /// A program in the cluster's network, with its kubectl configuration.
    pub fn inside(&self, program: &str) -> Invocation {
        match self.cluster {
            Cluster::Local => self.script("dev/cluster/cluster").arg("run").arg(program),
            Cluster::Current => self.program(program),
        }
    }

    /// A shell script with the functions of `dev/cluster/lib.sh`, such as `start` and `stop`.
    pub fn node_script(&self, script: &str) -> Invocation {
        let script = format!("set -euo pipefail\n. dev/cluster/lib.sh\n{script}");
        self.program("bash").env("OLMKIT", &self.olmkit).arg("-c").arg(script)
    }

    /// olmkit on this machine.
    pub fn olmkit(&self, words: &str) -> Invocation {
        self.program(&self.olmkit.to_string_lossy()).words(words)
    }

    /// olmkit in the cluster's network.
    pub fn kit(&self, words: &str) -> Invocation {
        self.inside(&self.olmkit.to_string_lossy()).words(words)
    }

    /// Runs kubectl with these arguments, separated by spaces.
    pub fn kubectl(&self, words: &str) -> anyhow::Result<String> {
        self.inside("kubectl").words(words).run()
    }

    /// Applies objects, in YAML or JSON.
    pub fn apply(&self, objects: &str) -> anyhow::Result<String> {
        self.inside("kubectl").words("apply -f -").input(objects).run()
    }

    /// Prints the title of a group of checks.
    pub fn title(&self, title: &str) {
        println!("\n{title}");
    }

    /// The namespace with this name.
    pub fn namespace<'a>(&'a self, name: &str) -> Namespace<'a> {
        Namespace {
            run: self,
            name: name.to_owned(),
        }
    }

    /// Polls until the value is as wanted.
    pub fn until(
        &self,
        seconds: u64,
        wanted: &str,
        mut value: impl FnMut() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        self.until_true(seconds, || {
            let value = value()?;
            ensure!(value == wanted, "the value is {value:?}, wanted {wanted:?}");
            Ok(())
        })
    }

    /// Polls until the text contains a part.
    pub fn until_contains(
        &self,
        seconds: u64,
        part: &str,
        mut text: impl FnMut() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        self.until_true(seconds, || contains(&text()?, part))
    }

    /// Polls until the check passes. The error is the last one of the check.
    pub fn until_true(&self, seconds: u64, mut check: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(seconds);
        let result = loop {
            match check() {
                Ok(()) => break Ok(()),
                Err(error) if Instant::now() >= end => break Err(error.context(format!("not within {seconds} s"))),
                Err(_) => thread::sleep(Duration::from_millis(500)),
            }
            self.log.mute(true);
        };
        self.log.mute(false);
        result
    }
}

/// A namespace of the cluster.
pub struct Namespace<'a> {
    pub run: &'a Run,
    pub name: String,
}

impl Namespace<'_> {
    /// kubectl in this namespace.
    pub fn command(&self, words: &str) -> Invocation {
        self.run.inside("kubectl").arg("-n").arg(&self.name).words(words)
    }

    /// Runs kubectl with these arguments, separated by spaces.
    pub fn kubectl(&self, words: &str) -> anyhow::Result<String> {
        self.command(words).run()
    }

    /// Reads a field of objects by a JSONPath.
    pub fn get(&self, objects: &str, path: &str) -> anyhow::Result<String> {
        self.command("get")
            .words(objects)
            .arg("-o")
            .arg(format!("jsonpath={path}"))
            .run()
    }

    /// Applies objects, in YAML or JSON.
    pub fn apply(&self, objects: &str) -> anyhow::Result<String> {
        self.command("apply -f -").input(objects).run()
    }

    /// Creates objects, in YAML or JSON.
    pub fn create(&self, objects: &str) -> anyhow::Result<String> {
        self.command("create -f -").input(objects).run()
    }

    /// olmkit for this namespace.
    pub fn kit(&self, words: &str) -> Invocation {
        self.run.kit(words).arg("-n").arg(&self.name)
    }

    /// Creates the namespace with the restricted pod security standard.
    pub fn create_restricted(&self) -> anyhow::Result<()> {
        self.run.kubectl(&format!("create namespace {}", self.name))?;
        let label = "pod-security.kubernetes.io/enforce=restricted";
        self.run.kubectl(&format!("label namespace {} {label}", self.name))?;
        Ok(())
    }

    /// Deletes the namespace and waits for its end.
    pub fn delete(&self) -> anyhow::Result<()> {
        self.run.kubectl(&format!(
            "delete namespace {} --ignore-not-found --timeout=300s",
            self.name
        ))?;
        Ok(())
    }

    pub fn csv_phase(&self, name: &str) -> anyhow::Result<String> {
        self.get(&format!("csv {name} --ignore-not-found"), "{.status.phase}")
    }

    /// State of the connection between OLM and a catalog.
    pub fn catalog_state(&self, name: &str) -> anyhow::Result<String> {
        self.get(
            &format!("catalogsource {name}"),
            "{.status.connectionState.lastObservedState}",
        )
    }

    /// Waits until the version is installed, and no other one.
    pub fn installed(&self, version: &str) -> anyhow::Result<()> {
        let name = format!("{PACKAGE}.v{version}");
        self.run.until(180, "Succeeded", || self.csv_phase(&name))?;
        self.run
            .until(180, &name, || self.get("csv", "{.items[*].metadata.name}"))
    }

    /// `cleanup` removes the package, and finds nothing when it runs again.
    pub fn cleaned_up(&self) -> anyhow::Result<()> {
        let words = format!("cleanup {PACKAGE}");
        self.kit(&words).run()?;
        let again = self.kit(&words).finish()?;
        ensure!(again.code == 0, "exit code {} of the second cleanup", again.code);
        contains(&again.text(), &format!("package {PACKAGE} is not installed"))
    }

    /// The phase of the sample, and its number of ready servers.
    pub fn sample_state(&self) -> anyhow::Result<String> {
        self.get(
            "memcached memcached-sample",
            "{.status.phase} with {.status.readyReplicas} ready",
        )
    }

    /// Creates the sample and waits until it runs.
    pub fn sample_runs(&self) -> anyhow::Result<()> {
        self.create_sample()?;
        self.run.until(180, "Running with 2 ready", || self.sample_state())
    }

    pub fn create_sample(&self) -> anyhow::Result<String> {
        self.kubectl("apply -f config/samples/cache_v1alpha1_memcached.yaml")
    }

    /// The image of the sample's servers.
    pub fn operand_image(&self) -> anyhow::Result<String> {
        self.get(
            "deployment memcached-sample",
            "{.spec.template.spec.containers[0].image}",
        )
    }

    /// The sample's pods with their identities and restarts, one line each.
    pub fn operand_pods(&self) -> anyhow::Result<String> {
        self.get(
            "pods -l memcached_cr=memcached-sample --sort-by=.metadata.name",
            "{range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}",
        )
    }

    /// `settled` if the rollout of the sample is complete.
    pub fn rollout(&self) -> anyhow::Result<String> {
        let said = self.kubectl("rollout status deployment/memcached-sample --watch=false")?;
        Ok(if said.contains("successfully rolled out") {
            "settled"
        } else {
            ""
        }
        .to_owned())
    }

    /// A pod stores and reads a value through the sample's Service. One connection reaches one server.
    pub fn talk_to_memcached(&self) -> anyhow::Result<String> {
        self.kubectl("delete pod memcached-client --ignore-not-found --wait")?;
        let talk = r"printf 'set greeting 0 0 5\r\nhello\r\nget greeting\r\nquit\r\n' | nc memcached-sample 11211";
        self.command("run memcached-client --restart=Never --quiet")
            .arg(format!("--image={}", self.run.busybox))
            .words("--command -- sh -c")
            .arg(talk)
            .run()?;
        self.run
            .until(300, "Succeeded", || self.get("pod memcached-client", "{.status.phase}"))?;
        let answer = self.kubectl("logs memcached-client")?.replace('\r', "");
        self.kubectl("delete pod memcached-client --wait=false")?;
        Ok(answer)
    }

    /// The status of a condition of a Memcached, or another of its fields.
    pub fn condition(&self, name: &str, condition: &str, field: &str) -> anyhow::Result<String> {
        self.get(
            &format!("memcached {name}"),
            &format!("{{.status.conditions[?(@.type==\"{condition}\")].{field}}}"),
        )
    }
}

impl crate::command::Finished {
    /// Both outputs.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Fails unless the text contains a part.
pub fn contains(text: &str, part: &str) -> anyhow::Result<()> {
    ensure!(text.contains(part), "{part:?} is not in {text:?}");
    Ok(())
}

/// Fails unless the value is as wanted.
pub fn is(value: &str, wanted: &str) -> anyhow::Result<()> {
    ensure!(value == wanted, "the value is {value:?}, wanted {wanted:?}");
    Ok(())
}

/// A cause that olmkit reported as JSON.
pub struct Cause {
    pub message: String,
    pub help: String,
}

/// Runs the command with `-o json`. It must end with exit code 1 and report an error with this code.
pub fn fails_with(code: &str, command: Invocation) -> anyhow::Result<Cause> {
    let finished = command.words("-o json").finish()?;
    ensure!(finished.code == 1, "exit code {}", finished.code);
    let answer: Value = serde_json::from_str(&finished.stdout).context("standard output is not JSON")?;
    let cause = error_with(code, &answer).with_context(|| format!("no error {code}"))?;
    let text = |field: &str| cause.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Cause {
        message: text("message"),
        help: text("help"),
    })
}

fn error_with<'a>(code: &str, value: &'a Value) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => {
            let is = |field: &str, text: &str| fields.get(field).and_then(Value::as_str) == Some(text);
            if is("code", code) && is("severity", "error") {
                return Some(value);
            }
            fields.values().find_map(|value| error_with(code, value))
        }
        Value::Array(items) => items.iter().find_map(|value| error_with(code, value)),
        _ => None,
    }
}

impl Cause {
    /// Runs the first kubectl command of the help, as a reader would copy it.
    pub fn carry_out(&self, run: &Run) -> anyhow::Result<String> {
        let line = kubectl_command(&self.help).with_context(|| format!("no kubectl command in {:?}", self.help))?;
        run.inside("sh").arg("-c").arg(line).run()
    }
}

/// The first kubectl command in a text. A semicolon inside a JSON patch belongs to the command.
fn kubectl_command(help: &str) -> Option<&str> {
    let line = help.lines().find_map(|line| line.get(line.find("kubectl ")?..))?;
    let line = line.split("; or ").next()?;
    let end = line
        .match_indices(';')
        .find(|(at, _)| !line.get(*at..).unwrap_or_default().contains('}'));
    let line = line.get(..end.map_or(line.len(), |(at, _)| at))?;
    Some(line.strip_suffix(')').unwrap_or(line))
}

/// ANSI codes, or nothing if standard output is not a terminal.
pub fn colored(code: &str, text: &str) -> String {
    if std::io::stdout().is_terminal() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_first_kubectl_command_of_a_help_text_is_run() {
        let patch = "approve it: kubectl patch installplan a --type merge -p '{\"spec\": {\"approved\": true}}'; or change approval";
        assert_eq!(
            kubectl_command(patch),
            Some("kubectl patch installplan a --type merge -p '{\"spec\": {\"approved\": true}}'")
        );
        assert_eq!(
            kubectl_command("list them (kubectl get pods -A)"),
            Some("kubectl get pods -A")
        );
        assert_eq!(
            kubectl_command("run kubectl get pods; then wait"),
            Some("kubectl get pods")
        );
        assert_eq!(kubectl_command("wait"), None);
    }

    #[test]
    fn an_error_is_found_by_code_at_any_depth() {
        let answer = serde_json::json!({"causes": [{"code": "a", "severity": "warning"}, {"code": "a", "severity": "error", "help": "h"}]});
        assert_eq!(error_with("a", &answer).unwrap()["help"], "h");
        assert_eq!(error_with("b", &answer), None);
    }
}
