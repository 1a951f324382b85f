//! Starts a catalog server, lets clients misbehave and measures the effect on other clients, for
//! `dev/bench/hostile-clients.sh`: `hostile_clients PORT CLIENTS SECONDS COMMAND ARGUMENT…`.
//!
//! Prints, separated by spaces: number of calls of good clients and how many failed, their median, 99th percentile and
//! maximum in milliseconds, the same five for probes, each on a new connection, and resident megabytes: before, the
//! maximum during the test, and after the clients have disconnected.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use olmkit_serve::api;
use olmkit_serve::api::registry_client::RegistryClient;
use olmkit_serve::probe;
use test_support::hostile::{self, Kind};
use tonic::transport::Channel;

/// Kinds of misbehavior, used in turn.
const KINDS: [Kind; 7] = [
    Kind::Unread(50),
    Kind::Unread(16),
    Kind::Silent,
    Kind::Drip,
    Kind::Idle,
    Kind::Unread(1),
    Kind::SlowRequest,
];
const GOOD: usize = 8;
const PAUSE: Duration = Duration::from_millis(50);

/// The server, ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// A memory counter of the process, in megabytes.
    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
    }
}

/// Times of calls, and how many failed.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<(Vec<f64>, usize)>>);

impl Times {
    fn note(&self, begin: Instant, right: bool) {
        let mut times = self.0.lock().unwrap();
        times.0.push(begin.elapsed().as_secs_f64() * 1000.0);
        times.1 += usize::from(!right);
    }

    fn text(&self) -> String {
        let mut times = self.0.lock().unwrap();
        let failed = times.1;
        times.0.sort_by(f64::total_cmp);
        let at = |share: f64| times.0[((times.0.len() - 1) as f64 * share) as usize];
        format!(
            "{} {failed} {:.1} {:.1} {:.1}",
            times.0.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        )
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, clients, seconds, program, rest @ ..] = arguments.as_slice() else {
        panic!("usage: hostile_clients PORT CLIENTS SECONDS COMMAND ARGUMENT…");
    };
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    let mut command = Command::new(program);
    let mut server = Server(command.args(rest).stdout(Stdio::null()).spawn().unwrap());
    let second = Duration::from_secs(1);
    while probe::check(&address.to_string(), "", second, second).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if let Some(status) = server.0.try_wait().unwrap() {
            panic!("the server ended: {status}");
        }
    }
    let channel = connect(address).await;
    let names = packages(channel).await;
    let before = server.memory("VmRSS:");
    eprintln!(
        "{} MB of the memory before is the program itself",
        server.memory("RssFile:")
    );
    let (calls, probes) = (Times::default(), Times::default());
    let mut good = tokio::task::JoinSet::new();
    for number in 0..GOOD {
        good.spawn(ask(connect(address).await, names.clone(), number, calls.clone()));
    }
    good.spawn(look(address, probes.clone()));
    let mut bad = tokio::task::JoinSet::new();
    for number in 0..clients.parse().unwrap() {
        let kind = KINDS[number % KINDS.len()];
        // A disconnected client reconnects.
        bad.spawn(async move {
            loop {
                hostile::run(address, kind).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
    good.shutdown().await;
    bad.shutdown().await;
    let most = server.memory("VmHWM:");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = server.memory("VmRSS:");
    println!("{} {} {before} {most} {after}", calls.text(), probes.text());
}

async fn connect(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap()
}

async fn packages(channel: Channel) -> Vec<String> {
    let mut client = RegistryClient::new(channel);
    let mut stream = client
        .list_packages(api::ListPackageRequest {})
        .await
        .unwrap()
        .into_inner();
    let mut names = Vec::new();
    while let Some(package) = stream.message().await.unwrap() {
        names.push(package.name);
    }
    names
}

/// Asks for one package after the other.
async fn ask(channel: Channel, names: Vec<String>, number: usize, times: Times) {
    let mut client = RegistryClient::new(channel);
    for at in number.. {
        let name = names[at % names.len()].clone();
        let begin = Instant::now();
        let answer = client.get_package(api::GetPackageRequest { name }).await;
        times.note(begin, answer.is_ok());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks for the health, each time on a new connection, as the kubelet does.
async fn look(address: SocketAddr, times: Times) {
    loop {
        let begin = Instant::now();
        let five = Duration::from_secs(5);
        let answer = probe::check(&address.to_string(), "", five, five).await;
        times.note(begin, answer.is_ok());
        tokio::time::sleep(PAUSE).await;
    }
}
