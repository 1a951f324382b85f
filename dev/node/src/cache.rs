//! A Memcached on the node, and a client that stores and reads its keys.

use std::env;
use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::command::Invocation;
use crate::e2e::operator::memcached;
use crate::run::{Namespace, is};

/// The operand image of `dev/cluster`: memcached with a shell.
pub const IMAGE: &str = "docker.io/dev/memcached:1";

/// The DNS server of `dev/cluster`.
const DNS: &str = "10.77.0.1";

/// A Memcached with three servers that keep their names.
pub struct Cache<'a> {
    space: &'a Namespace<'a>,
    pub name: &'a str,
    /// Number of keys that the client stores, with a value of 1 kB each.
    pub keys: usize,
}

/// The keys that the client found and those that it stored, for each server.
#[derive(Debug, PartialEq, Eq)]
pub struct Counts {
    pub found: Vec<u64>,
    pub stored: Vec<u64>,
}

/// The result of a client that read during an event.
pub struct Watched {
    /// The most keys that it could not read at a moment.
    pub most_missing: u64,
    pub reads: u64,
    pub failed: u64,
}

impl<'a> Cache<'a> {
    /// Creates the Memcached and waits until it is ready. `more` are further fields of the spec, as JSON.
    pub fn create(space: &'a Namespace, name: &'a str, keys: usize, more: &str) -> anyhow::Result<Self> {
        let spec = format!(r#"{{"size": 3, "workload": "StatefulSet", "image": "{IMAGE}"{more}}}"#);
        space.apply(&memcached(name, &spec))?;
        let cache = Self { space, name, keys };
        cache.ready()?;
        Ok(cache)
    }

    /// Changes the spec. `spec` is JSON without spaces.
    pub fn change(&self, spec: &str) -> anyhow::Result<()> {
        let patch = format!("patch memcached {} --type=merge -p {{\"spec\":{spec}}}", self.name);
        self.space.kubectl(&patch).map(drop)
    }

    /// Waits until the Memcached is ready with its current spec, and all of its rollouts are complete.
    pub fn ready(&self) -> anyhow::Result<()> {
        let memcached = format!("memcached {}", self.name);
        self.space.run.until_true(600, || {
            let generation = self.space.get(&memcached, "{.metadata.generation}")?;
            let path = "{.status.observedGeneration} {.status.conditions[?(@.type=='Ready')].status} \
                {.status.conditions[?(@.type=='Progressing')].status}";
            is(&self.space.get(&memcached, path)?, &format!("{generation} True False"))
        })
    }

    /// A field of the pod of a server.
    pub fn pod(&self, ordinal: usize, path: &str) -> anyhow::Result<String> {
        self.space
            .get(&format!("pod {}-{ordinal} --ignore-not-found", self.name), path)
    }

    /// Identities and restarts of all containers.
    pub fn containers(&self) -> anyhow::Result<String> {
        let pods = format!("pods -l memcached_cr={} --sort-by=.metadata.name", self.name);
        let fields = "{.containerID} {.restartCount} ";
        self.space.get(
            &pods,
            &format!("{{range .items[*].status.containerStatuses[*]}}{fields}{{end}}"),
        )
    }

    /// Runs a shell command in the container of a server.
    pub fn execute(&self, ordinal: usize, script: &str) -> anyhow::Result<String> {
        let command = self.space.command("exec").arg(format!("{}-{ordinal}", self.name));
        command.words("-c memcached -- sh -c").arg(script).run()
    }

    /// Does something that restarts the container of a server, and waits for the restart.
    pub fn restarted(&self, ordinal: usize, restart: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let state = || {
            let fields = "{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
            self.pod(ordinal, &format!("{{.metadata.uid}} {fields}"))
        };
        let before = state()?;
        restart()?;
        self.space.run.until_true(300, || {
            let now = state()?;
            ensure!(
                now != before && now.ends_with("true"),
                "the container has not restarted: {now}"
            );
            is(
                now.split(' ').next().unwrap_or_default(),
                before.split(' ').next().unwrap_or_default(),
            )
        })?;
        self.ready()
    }

    /// Does something that replaces the pod of a server, and waits for the new one.
    pub fn replaced(&self, ordinal: usize, replace: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let uid = || self.pod(ordinal, "{.metadata.uid}");
        let before = uid()?;
        replace()?;
        self.space.run.until_true(300, || {
            let now = uid()?;
            ensure!(!now.is_empty() && now != before, "the pod is the former one");
            Ok(())
        })?;
        self.ready()
    }

    /// The addresses of the Service's name, sorted.
    pub fn resolved(&self) -> anyhow::Result<Vec<String>> {
        let service = format!("{}.{}.svc", self.name, self.space.name);
        let answer: Value = serde_json::from_str(&self.client_of(&service, "resolve")?.run()?)?;
        let addresses = answer.get("addresses").and_then(Value::as_array);
        let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
        let mut addresses: Vec<String> = addresses.map(str::to_owned).collect();
        addresses.sort();
        Ok(addresses)
    }

    fn client(&self, action: &str) -> anyhow::Result<Invocation> {
        let servers = self
            .space
            .get(&format!("configmap {}-servers", self.name), "{.data.servers}")?;
        self.client_of(&servers, action)
    }

    fn client_of(&self, servers: &str, action: &str) -> anyhow::Result<Invocation> {
        let program = env::current_exe()?;
        let client = self.space.run.inside(&program.to_string_lossy());
        let settings = format!("client --dns {DNS} --keys {} --servers {servers} {action}", self.keys);
        Ok(client.words(&settings))
    }

    /// Stores all keys. They must fit into the servers, so that none is evicted.
    pub fn store(&self) -> anyhow::Result<()> {
        self.client("store")?.run()?;
        let counts = self.counts()?;
        ensure!(counts.found == counts.stored, "the servers evict keys: {counts:?}");
        Ok(())
    }

    /// Reads all keys.
    pub fn counts(&self) -> anyhow::Result<Counts> {
        let answer: Value = serde_json::from_str(&self.client("count")?.run()?)?;
        let list = |name: &str| -> Option<Vec<u64>> {
            let counts = answer.get(name)?.as_array()?;
            counts.iter().map(Value::as_u64).collect()
        };
        Ok(Counts {
            found: list("found").context("no counts")?,
            stored: list("stored").context("no counts")?,
        })
    }

    /// Reads while something happens. With `fill`, the client stores missing keys again.
    pub fn watched(&self, fill: bool, event: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Watched> {
        let run = self.space.run;
        let (output, end) = (run.results.join("client.json"), run.results.join("client.end"));
        let _ = fs::remove_file(&end);
        let fill = if fill { "--fill" } else { "" };
        let mut child = self
            .client(&format!("watch {fill} --until {}", end.display()))?
            .spawn(&output)?;
        let result = event();
        fs::write(&end, "")?;
        child.wait()?;
        result?;
        let answer: Value = serde_json::from_str(&fs::read_to_string(&output)?)?;
        let number = |name: &str| answer.get(name).and_then(Value::as_u64).context("no result");
        Ok(Watched {
            most_missing: number("mostMissing")?,
            reads: number("reads")?,
            failed: number("failed")?,
        })
    }

    /// Deletes the Memcached, and waits for the end of its servers.
    pub fn delete(&self) -> anyhow::Result<()> {
        self.space
            .kubectl(&format!("delete memcached {} --timeout=300s", self.name))?;
        let pods = format!("get pods -l memcached_cr={} -o name", self.name);
        self.space.run.until(180, "", || self.space.kubectl(&pods))
    }
}
