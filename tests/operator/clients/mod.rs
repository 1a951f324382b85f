//! The examples in `docs/memcached/clients.md` with real servers.
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    lab::eventually,
    warm::{Program, Server},
};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operator/clients");

/// The example in a language: the first block of the page.
fn example(language: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/memcached/clients.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split(&format!("```{language}\n")).nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// Three servers with the same port, each on another loopback address.
struct Servers {
    program: Program,
    port: u16,
    running: Vec<Server>,
    volume: TempDir,
}

impl Servers {
    /// `None`, with a line about it, if there is no memcached.
    fn start() -> Option<Self> {
        let program = Program::find()?;
        let port = free_port();
        let mut servers = Self {
            program,
            port,
            running: Vec::new(),
            volume: tempfile::tempdir().unwrap(),
        };
        for last in 1..=3 {
            servers.run(last);
        }
        Some(servers)
    }

    /// Starts a server on the address `127.0.0.LAST`.
    fn run(&mut self, last: u8) {
        let (spec, address) = (json!({ "containerPort": self.port }), format!("127.0.0.{last}"));
        let server = Server::start_on(&self.program, spec, self.volume.path(), &address);
        self.running.push(server);
    }

    fn addresses(&self) -> String {
        let addresses = (1..=3).map(|last| format!("127.0.0.{last}:{}", self.port));
        addresses.collect::<Vec<_>>().join(",")
    }
}

/// A port that is free on all addresses.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The directory with the modules of `requirements.txt`, which pip downloads once. `None`, with a line about it, if that fails.
fn python() -> Option<PathBuf> {
    let requirements = Path::new(HERE).join("requirements.txt");
    let name = fs::read_to_string(&requirements).unwrap().trim().replace("==", "-");
    let modules = kube_testbed::tools::cache().unwrap().join(name);
    if !modules.exists() {
        let new = tempfile::tempdir_in(modules.parent().unwrap()).unwrap();
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(new.path());
        let output = pip.arg("--requirement").arg(requirements).output().ok()?;
        if !output.status.success() {
            eprintln!("skipped: pip: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        // Another test may have been faster.
        let _ = fs::rename(new.path(), &modules);
    }
    Some(modules)
}

/// A Python program that answers one line of JSON to each line.
struct Python {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Python {
    fn start(program: &str, modules: &Path, servers: &str) -> Self {
        let mut process = Command::new("python3")
            .args(["-c", program])
            .env("PYTHONPATH", modules)
            .env("MEMCACHED_SERVERS", servers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.input, "{question}").unwrap();
        serde_json::from_str(&self.line()).unwrap()
    }
}

/// Resolves names by a table, as a DNS server would.
const NAMES: &str = r#"
import json, socket, sys
names, resolve = {}, socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: resolve(names.get(host, host), *more, **named)
names.update({f"sample-{number}.sample.cache.svc": f"127.0.0.{number + 1}" for number in range(3)})
"#;

/// Stores and counts keys on request, in the client of the example.
const KEYS: &str = r#"
sys.stdout.flush()
keys = [f"key{number}" for number in range(3000)]
for line in sys.stdin:
    question = json.loads(line)
    names.update(question.get("move", {}))
    answer = {}
    for key in keys:
        owner = client.hasher.get_node(key)
        found = client.set(key, key) if question.get("store") else client.get(key) == key.encode()
        counts = answer.setdefault(owner, [0, 0])
        counts[0] += bool(found)
        counts[1] += 1
    print(json.dumps(answer), flush=True)
"#;

/// A server moves to another address. Its name stays, so the keys of the other servers stay where they are.
#[tokio::test]
async fn a_client_that_hashes_names_keeps_the_keys_of_the_servers_that_stay() {
    let (Some(mut servers), Some(modules)) = (Servers::start(), python()) else {
        return;
    };
    let names: Vec<String> = (0..3)
        .map(|number| format!("sample-{number}.sample.cache.svc:{}", servers.port))
        .collect();
    let program = [NAMES, &example("python"), KEYS].concat();
    let mut client = eventually("all servers run", async || {
        let mut client = Python::start(&program, &modules, &names.join(","));
        (client.line() == "b'hello'").then_some(client)
    })
    .await;
    let stored = eventually("all keys are stored", async || {
        let stored = client.ask(&json!({ "store": true }));
        (lost(&stored) == 0).then_some(stored)
    })
    .await;
    let keys = |counts: &Value, name: &str| counts[name][1].as_u64().unwrap();
    assert!(names.iter().all(|name| keys(&stored, name) > 500), "{stored}");

    drop(servers.running.remove(1));
    servers.run(4);
    let moved = json!({ "move": { "sample-1.sample.cache.svc": "127.0.0.4" } });
    // The client reports the failed server as missing keys, and connects to the new address after a second.
    let mut counts = client.ask(&moved);
    assert_eq!(lost(&counts), keys(&stored, &names[1]), "{stored} {counts}");
    for name in [&names[0], &names[2]] {
        assert_eq!(counts[name][0], stored[name][1], "keys of {name}");
    }
    eventually("the moved server stores keys", async || {
        client.ask(&json!({ "store": true }));
        counts = client.ask(&json!({}));
        (counts == stored).then_some(())
    })
    .await;
}

/// The number of keys that the client did not find.
fn lost(counts: &Value) -> u64 {
    let counts = counts.as_object().unwrap().values();
    counts
        .map(|counts| counts[1].as_u64().unwrap() - counts[0].as_u64().unwrap())
        .sum()
}

/// Builds a package of the Go module in `directory`. Returns `None`, with a line about it, without Go or the modules.
pub fn go_build(directory: &Path, package: &str, program: &Path) -> Option<()> {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(program).arg(package);
    let built = go.current_dir(directory).env("CGO_ENABLED", "0").output();
    let message = match built {
        Ok(built) if built.status.success() => return Some(()),
        Ok(built) => String::from_utf8_lossy(&built.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    // The compiler names a place in the file. Everything else is a module that cannot be read.
    assert!(!message.contains(".go:"), "{message}");
    eprintln!("skipped: go build: {message}");
    None
}

#[tokio::test]
async fn the_go_example_stores_and_reads_a_key() {
    let Some(servers) = Servers::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    for name in ["go.mod", "go.sum"] {
        fs::copy(Path::new(HERE).join(name), directory.path().join(name)).unwrap();
    }
    fs::write(directory.path().join("main.go"), example("go")).unwrap();
    let program = directory.path().join("example");
    if go_build(directory.path(), ".", &program).is_none() {
        return;
    }
    let answer = eventually("all servers run", async || {
        let output = Command::new(&program)
            .env("MEMCACHED_SERVERS", servers.addresses())
            .output();
        let output = output.unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    })
    .await;
    assert_eq!(answer, "hello\n");
}
