//! Servers that keep their items over a restart, and servers with TLS.
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command},
};

use k8s_openapi::api::{apps::v1::Deployment, policy::v1::PodDisruptionBudget};
use memcached_operator::{api::v1alpha1::Memcached, operand};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::{Lab, eventually, value};

/// The pod template of `sample`.
async fn template(lab: &Lab) -> Value {
    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    value(&deployment)["spec"]["template"].take()
}

#[tokio::test]
async fn warm_caches_and_tls_change_the_pods_and_nothing_else() {
    let lab = Lab::new("warm").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let before = template(&lab).await;
    assert_eq!(before["spec"]["containers"][0]["command"], json!(["memcached"]));
    assert_eq!(before["spec"]["volumes"], Value::Null);

    let pods = lab.pods("sample").await;
    lab.change(
        "sample",
        json!({ "warmCache": "WarmRestart", "tls": { "secretName": "cert" } }),
    )
    .await;
    eventually("the servers are replaced", async || {
        lab.running("sample").await;
        let now = lab.pods("sample").await;
        (now.len() == 2 && now.iter().all(|name| !pods.contains(name))).then_some(())
    })
    .await;
    let warm = template(&lab).await;
    let container = &warm["spec"]["containers"][0];
    let file = json!([{ "name": "items", "emptyDir": { "medium": "Memory", "sizeLimit": "105Mi" } },
        { "name": "tls", "secret": { "secretName": "cert", "defaultMode": 420 } }]);
    assert_eq!(warm["spec"]["volumes"], file);
    assert_eq!(container["command"][0], "/bin/sh");
    assert_eq!(container["lifecycle"]["preStop"]["sleep"]["seconds"], 5);
    assert_eq!(container["resources"]["limits"]["memory"], "200Mi");
    let memcached = lab.running("sample").await;
    let written = memcached.metadata.generation;

    // No field is reverted or applied again and again.
    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    lab.change("sample", json!({ "disruptionBudget": { "maxUnavailable": 1 } }))
        .await;
    eventually("the change is applied", async || {
        (lab.running("sample").await.metadata.generation > written).then_some(())
    })
    .await;
    let now = lab.api::<Deployment>().get("sample").await.unwrap();
    assert_eq!(now.metadata.generation, deployment.metadata.generation);

    lab.change("sample", json!({ "warmCache": null, "tls": null })).await;
    eventually("the template is the former one", async || {
        (template(&lab).await == before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn node_maintenance_waits_for_servers_that_clients_still_fill() {
    let lab = Lab::new("warm-up").await;
    let _operator = lab.operator().await;
    lab.memcached(
        "sample",
        json!({ "size": 2, "warmCache": "WarmRestart", "warmUpSeconds": 3600 }),
    )
    .await;
    lab.running("sample").await;
    let budget = async |wanted: i32| {
        eventually("the budget counts servers that warm up", async || {
            let budget = lab.api::<PodDisruptionBudget>().get("sample").await.unwrap();
            (value(&budget)["spec"]["maxUnavailable"] == wanted).then_some(())
        })
        .await;
    };
    budget(0).await;
    lab.change("sample", json!({ "warmUpSeconds": 0 })).await;
    budget(1).await;
}

/// A memcached process, started as the container runtime would start the container of a Memcached.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts the server of a Memcached with a warm cache. `items` is its volume.
    fn start(items: &Path, program: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let memcached: Memcached = serde_json::from_value(json!({ "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached", "metadata": { "name": "sample" },
            "spec": { "containerPort": port, "warmCache": "WarmRestart" } }))
        .unwrap();
        let deployment = value(&operand::deployment(&memcached, "m:1"));
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let words = [&container["command"], &container["args"]].into_iter();
        let words = words.flat_map(|list| list.as_array().unwrap());
        let here = items.display().to_string();
        let words: Vec<String> = words
            .map(|word| word.as_str().unwrap().replace("/items", &here))
            .collect();
        // Memcached does not run as root without this option.
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["-u", "nobody", "-l", "127.0.0.1"])
            .env("PATH", path);
        Self {
            process: command.spawn().unwrap(),
            port,
        }
    }

    async fn connection(&self) -> BufReader<TcpStream> {
        let address = ("127.0.0.1", self.port);
        BufReader::new(eventually("memcached listens", async || TcpStream::connect(address).ok()).await)
    }

    async fn store(&self, keys: usize) {
        let mut connection = self.connection().await;
        for key in 0..keys {
            let request = format!("set key{key} 0 0 5\r\nvalue\r\n");
            connection.get_mut().write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            connection.read_line(&mut answer).unwrap();
            assert_eq!(answer, "STORED\r\n");
        }
    }

    /// The number of keys that the server has.
    async fn found(&self, keys: usize) -> usize {
        let mut connection = self.connection().await;
        let mut found = 0;
        for key in 0..keys {
            connection
                .get_mut()
                .write_all(format!("get key{key}\r\n").as_bytes())
                .unwrap();
            let mut line = String::new();
            while line != "END\r\n" {
                line.clear();
                connection.read_line(&mut line).unwrap();
                found += usize::from(line == "value\r\n");
            }
        }
        found
    }

    /// Sends a signal to a process and waits until the server has stopped.
    async fn stop(mut self, signal: &str, process: u32) {
        Command::new("kill")
            .args([signal, &process.to_string()])
            .status()
            .unwrap();
        eventually("memcached stops", async || self.process.try_wait().unwrap()).await;
    }
}

/// A directory with the program `memcached`: Debian's, which `dev/memcached.sh` unpacks. `None` on other systems without one.
fn program() -> Option<(TempDir, String)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/dev/memcached.sh");
    let answer = Command::new(script).output().unwrap();
    let version = String::from_utf8(answer.stdout).unwrap();
    let cache = kube_testbed::tools::cache().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let link = std::os::unix::fs::symlink(cache.join("memcached/run"), directory.path().join("memcached"));
    (answer.status.success() && link.is_ok()).then_some((directory, version))
}

#[tokio::test]
async fn a_graceful_restart_keeps_all_items_and_a_kill_keeps_none() {
    const KEYS: usize = 2000;
    let Some((program, version)) = program() else {
        eprintln!("skipped: dev/memcached.sh finds no memcached");
        return;
    };
    eprintln!("{version}");
    let items = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(items.path(), Some(65534), None).ok();
    let server = Server::start(items.path(), program.path());
    server.store(KEYS).await;
    let shell = server.process.id();
    server.stop("-TERM", shell).await;

    let server = Server::start(items.path(), program.path());
    assert_eq!(server.found(KEYS).await, KEYS);
    let children = format!("/proc/{0}/task/{0}/children", server.process.id());
    let children = std::fs::read_to_string(children).unwrap();
    let memcached = children.split_whitespace().next().unwrap().parse().unwrap();
    server.stop("-KILL", memcached).await;

    let server = Server::start(items.path(), program.path());
    assert_eq!(server.found(KEYS).await, 0);
    let shell = server.process.id();
    server.stop("-TERM", shell).await;
}
