//! `olmkit catalog serve` as a process under a load that does not behave.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use olmkit_serve::api;
use olmkit_serve::api::registry_client::RegistryClient;
use tonic::Streaming;

use test_support::process::Running;

const BUNDLES: usize = 1000;

/// A catalog whose bundles exceed the buffers of connections: 20 MB.
fn large_catalog() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let mut text = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n".to_owned();
    let entries: Vec<String> = (0..BUNDLES)
        .map(|at| match at {
            0 => "{name: p.v0}".to_owned(),
            _ => format!("{{name: p.v{at}, replaces: p.v{}}}", at - 1),
        })
        .collect();
    text.push_str(&format!(
        "---\nschema: olm.channel\nname: c\npackage: p\nentries: [{}]\n",
        entries.join(", ")
    ));
    for at in 0..BUNDLES {
        let noise = format!("{at:04}").repeat(5000);
        text.push_str(&format!(
            "---\nschema: olm.bundle\nname: p.v{at}\npackage: p\nimage: r.io/p:v{at}\nproperties:\n\
             - {{type: olm.package, value: {{packageName: p, version: {at}.0.0}}}}\n- {{type: noise, value: \"{noise}\"}}\n"
        ));
    }
    std::fs::write(root.path().join("catalog.yaml"), text).unwrap();
    root
}

/// Starts a server and waits until it serves.
async fn start(catalog: &Path, cache: &Path) -> Running {
    let arguments = [
        "catalog",
        "serve",
        "--port",
        "0",
        "--termination-log",
        "none",
        "--cache-dir",
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(arguments)
        .args([cache, catalog])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = log.find_map(|line| line.strip_prefix("listening on ")?.parse::<SocketAddr>().ok());
    let address = SocketAddr::from(([127, 0, 0, 1], address.unwrap().port()));
    std::thread::spawn(move || log.for_each(drop));
    let serves = async |address: &str| {
        let second = Duration::from_secs(1);
        olmkit_serve::probe::check(address, "", second, second).await.is_ok()
    };
    Running::until_serving(child, address, serves).await
}

fn ask_to_stop(server: &Running) {
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

fn ended(server: &mut Running, limit: Duration) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            return status;
        }
        assert!(begin.elapsed() < limit, "still running after {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Resident kilobytes.
fn resident(server: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

async fn bundles(address: SocketAddr) -> Streaming<api::Bundle> {
    let mut client = RegistryClient::connect(format!("http://{address}")).await.unwrap();
    let answer = client.list_bundles(api::ListBundlesRequest {}).await.unwrap();
    answer.into_inner()
}

/// Number of further bundles in a stream.
async fn rest(mut stream: Streaming<api::Bundle>) -> usize {
    let mut count = 0;
    while stream.message().await.unwrap().is_some() {
        count += 1;
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_to_stop_lets_open_streams_finish_and_takes_no_new_ones() {
    let (catalog, cache) = (large_catalog(), tempfile::tempdir().unwrap());
    let mut server = start(catalog.path(), cache.path()).await;
    let mut open = bundles(server.address).await;
    assert!(open.message().await.unwrap().is_some());
    ask_to_stop(&server);
    let begin = Instant::now();
    while tokio::net::TcpStream::connect(server.address).await.is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it still listens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(rest(open).await, BUNDLES - 1);
    assert!(ended(&mut server, Duration::from_secs(60)).success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_amid_a_stream_serves_the_same_again_from_its_cache() {
    let (catalog, cache) = (large_catalog(), tempfile::tempdir().unwrap());
    let mut server = start(catalog.path(), cache.path()).await;
    let mut open = bundles(server.address).await;
    assert!(open.message().await.unwrap().is_some());
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let broken = loop {
        match open.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended as if it were whole"),
            Err(status) => break status,
        }
    };
    assert_ne!(broken.code(), tonic::Code::Ok);
    let server = start(catalog.path(), cache.path()).await;
    assert_eq!(rest(bundles(server.address).await).await, BUNDLES);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_hold_up_nobody_and_cost_no_memory() {
    let (catalog, cache) = (large_catalog(), tempfile::tempdir().unwrap());
    let mut server = start(catalog.path(), cache.path()).await;
    assert_eq!(rest(bundles(server.address).await).await, BUNDLES);
    let before = resident(&server);
    let mut stalled = Vec::new();
    for _ in 0..40 {
        let mut stream = bundles(server.address).await;
        assert!(stream.message().await.unwrap().is_some());
        stalled.push(stream);
    }
    assert_eq!(rest(bundles(server.address).await).await, BUNDLES);
    // They requested 800 MB.
    let grown = resident(&server).saturating_sub(before) / 1024;
    assert!(grown < 80, "{grown} MB more");
    // They do not keep it from stopping either.
    ask_to_stop(&server);
    assert!(ended(&mut server, Duration::from_secs(120)).success());
    drop(stalled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_root_is_supported() {
    let catalog = large_catalog();
    // Not even root can create a directory there.
    let server = start(catalog.path(), Path::new("/proc/olmkit")).await;
    assert_eq!(rest(bundles(server.address).await).await, BUNDLES);
}
