//! Starts a catalog server and measures it, for benchmarks: `measure_server PORT SECONDS COMMAND ARGUMENT…`.
//!
//! Prints, separated by spaces: milliseconds from the start to the first answer of ListPackages, resident megabytes
//! when idle, bundles that ListBundles returns per second of wall clock and per second of the server's processor time,
//! the same for calls of GetPackage, and resident megabytes after that. Several connections send requests in parallel.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use olmkit_serve::api;
use olmkit_serve::api::registry_client::RegistryClient;
use tonic::transport::Channel;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Parallel connections.
const CONNECTIONS: usize = 4;
/// Calls of GetPackage that each of them has under way at a time.
const AT_A_TIME: usize = 8;

/// The server, ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn proc(&self, file: &str) -> Result<String, Failure> {
        Ok(std::fs::read_to_string(format!("/proc/{}/{file}", self.0.id()))?)
    }

    /// Resident megabytes.
    fn resident(&self) -> Result<u64, Failure> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: u64 = line
            .and_then(|line| line.split_whitespace().next())
            .ok_or("no VmRSS")?
            .parse()?;
        Ok(kilobytes / 1024)
    }

    /// Seconds of processor time; Linux counts hundredths.
    fn processor(&self) -> Result<f64, Failure> {
        let stat = self.proc("stat")?;
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let times = behind.split_whitespace().skip(11).take(2);
        let ticks: u64 = times.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        Ok(ticks as f64 / 100.0)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, seconds, program, rest @ ..] = arguments.as_slice() else {
        return Err("usage: measure_server PORT SECONDS COMMAND ARGUMENT…".into());
    };
    let span = Duration::from_secs(seconds.parse()?);
    let begin = Instant::now();
    let mut command = Command::new(program);
    command.args(rest).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Server(command.spawn()?);
    let (channel, names) = loop {
        if let Ok(answer) = first_answer(port).await {
            break answer;
        }
        if let Some(status) = server.0.try_wait()? {
            return Err(format!("the server ended: {status}").into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let first = begin.elapsed().as_millis();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let resident = server.resident()?;
    let mut channels = vec![channel];
    while channels.len() < CONNECTIONS {
        channels.push(connect(port).await?);
    }
    let (bundles, bundles_cpu) = rate(&server, span, || together(&channels, list_bundles)).await?;
    let ask = |channel| get_packages(channel, &names);
    let (packages, packages_cpu) = rate(&server, span, || together(&channels, ask)).await?;
    let busy = server.resident()?;
    println!("{first} {resident} {bundles:.0} {bundles_cpu:.0} {packages:.0} {packages_cpu:.0} {busy}");
    Ok(())
}

async fn connect(port: &str) -> Result<Channel, Failure> {
    Ok(Channel::from_shared(format!("http://127.0.0.1:{port}"))?
        .connect()
        .await?)
}

async fn first_answer(port: &str) -> Result<(Channel, Vec<String>), Failure> {
    let channel = connect(port).await?;
    let mut client = RegistryClient::new(channel.clone());
    let mut stream = client.list_packages(api::ListPackageRequest {}).await?.into_inner();
    let mut names = Vec::new();
    while let Some(package) = stream.message().await? {
        names.push(package.name);
    }
    Ok((channel, names))
}

/// Repeats `work` for a while: its count per second of wall clock and of the server's processor time.
async fn rate<F: Future<Output = Result<usize, Failure>>>(
    server: &Server,
    span: Duration,
    work: impl Fn() -> F,
) -> Result<(f64, f64), Failure> {
    let (begin, processor) = (Instant::now(), server.processor()?);
    let mut count = 0;
    while begin.elapsed() < span {
        count += work().await?;
    }
    let used = (server.processor()? - processor).max(0.01);
    Ok((count as f64 / begin.elapsed().as_secs_f64(), count as f64 / used))
}

/// Runs the same work on all connections in parallel and returns the sum of the counts.
async fn together<F: Future<Output = Result<usize, Failure>>>(
    channels: &[Channel],
    work: impl Fn(Channel) -> F,
) -> Result<usize, Failure> {
    let counts = futures::future::try_join_all(channels.iter().cloned().map(work)).await?;
    Ok(counts.iter().sum())
}

async fn list_bundles(channel: Channel) -> Result<usize, Failure> {
    let mut client = RegistryClient::new(channel).max_decoding_message_size(64 << 20);
    let mut stream = client.list_bundles(api::ListBundlesRequest {}).await?.into_inner();
    let mut count = 0;
    while stream.message().await?.is_some() {
        count += 1;
    }
    Ok(count)
}

async fn get_packages(channel: Channel, names: &[String]) -> Result<usize, Failure> {
    let calls = names.chunks(AT_A_TIME).map(|names| {
        futures::future::try_join_all(names.iter().map(|name| {
            let mut client = RegistryClient::new(channel.clone());
            async move { client.get_package(api::GetPackageRequest { name: name.clone() }).await }
        }))
    });
    for calls in calls {
        calls.await?;
    }
    Ok(names.len())
}
