//! `catalog serve` as a process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use super::Desk;

/// A running server, ended when dropped.
struct Server(Child, Vec<String>);

impl Server {
    /// Starts it and waits until it has reported the served packages.
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        Self::start_with(desk, arguments, |command| command)
    }

    fn start_with(desk: &Desk, arguments: &[&str], change: impl FnOnce(Command) -> Command) -> Self {
        let serve = [
            &["catalog", "serve", "--port", "0", "--termination-log", "none"],
            arguments,
        ]
        .concat();
        let mut child = change(desk.command(&serve)).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = Vec::new();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut waiting = true;
        while waiting {
            let Some(line) = log.next() else { break };
            let line = line.unwrap();
            waiting = !line.contains("channel entries");
            lines.push(line);
        }
        std::thread::spawn(move || log.for_each(drop));
        Server(child, lines)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn catalogs_are_served_from_directories_layouts_and_images() {
    let desk = Desk::with_catalog();
    let tag = "registry.example.com/catalog:v1";
    let build = [
        "image", "build", "catalog", "catalog", "--binary", "server", "--tag", tag,
    ];
    desk.run(&[&build[..], &["--output", "store", "--output", "oci:layout"]].concat())
        .ok();
    let image = format!("store:{tag}");
    for catalog in ["catalog", "layout", "oci:layout", &image] {
        let server = Server::start(&desk, &[catalog]);
        let last = server.1.last().map(String::as_str);
        assert_eq!(
            last,
            Some("1 packages, 2 bundles, 2 channel entries"),
            "{catalog}: {:?}",
            server.1
        );
    }
    desk.run(&["catalog", "serve", "--port", "0", "./nowhere"])
        .refused("./nowhere");
    desk.run(&[
        "image",
        "build",
        "bundle",
        "new",
        "--tag",
        "registry.example.com/bundle:v1",
    ])
    .ok();
    desk.run(&[
        "catalog",
        "serve",
        "--port",
        "0",
        "store:registry.example.com/bundle:v1",
    ])
    .refused("this is a bundle image");
}

#[test]
fn an_invalid_package_is_reported_and_the_others_are_served() {
    let desk = Desk::with_catalog();
    std::fs::write(
        desk.path("catalog/broken.yaml"),
        "schema: olm.package\nname: q\ndefaultChannel: c\n",
    )
    .unwrap();
    let server = Server::start(
        &desk,
        &["catalog", "--http=127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"],
    );
    assert!(
        server.1.iter().any(|line| line.starts_with("listening for HTTP on ")),
        "{:?}",
        server.1
    );
    assert_eq!(server.1.last().unwrap(), "1 packages, 2 bundles, 2 channel entries");
    drop(server);
    desk.run(&["catalog", "serve", "--port", "0", "--strict", "catalog"])
        .refused("invalid package \"q\"");
    desk.run(&["catalog", "serve", "--cache-only", "--cache-dir", "cache", "catalog"])
        .refused("invalid package \"q\"");
}

/// The body of an HTTP answer. None until the server answers with 200.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    head.starts_with("HTTP/1.0 200").then(|| body.to_owned())
}

#[test]
fn an_index_prepared_without_the_http_api_answers_at_once() {
    let desk = Desk::with_catalog();
    let prepare = ["catalog", "serve", "--cache-dir", "cache", "--cache-only", "catalog"];
    desk.run(&prepare).ok();
    let prepared = std::fs::read(desk.path("cache/olmkit-2.index")).unwrap();
    let serve = ["catalog", "--cache-dir", "cache", "--http=127.0.0.1:0"];
    let server = Server::start(&desk, &serve);
    let early = "the prepared index fits and answers gRPC";
    assert!(server.1.iter().any(|line| line.starts_with(early)), "{:?}", server.1);
    let http = server
        .1
        .iter()
        .find_map(|line| line.strip_prefix("listening for HTTP on "));
    let begin = std::time::Instant::now();
    let all = loop {
        match get(http.unwrap(), "/api/v1/all") {
            Some(all) => break all,
            None => assert!(begin.elapsed().as_secs() < 60, "{:?}", server.1),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(all.lines().count(), 4, "package, channel, two bundles: {all}");
    drop(server);
    assert_ne!(std::fs::read(desk.path("cache/olmkit-2.index")).unwrap(), prepared);
    let server = Server::start(&desk, &serve);
    let fits = "the prepared index fits (";
    assert!(server.1.iter().any(|line| line.starts_with(fits)), "{:?}", server.1);
    drop(server);
    // Without the API the larger index works as well. Enforcing reports how to prepare the missing one.
    desk.run(&[&prepare[..], &["--cache-enforce-integrity"]].concat()).ok();
    std::fs::write(desk.path("cache/olmkit-2.index"), prepared).unwrap();
    let enforced = [
        &["catalog", "serve", "--port", "0", "--cache-enforce-integrity"],
        &serve[..],
    ]
    .concat();
    desk.run(&enforced).refused("--cache-only --http");
}

/// Seconds of processor time; Linux counts hundredths.
fn processor(server: &Server) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.0.id())).unwrap();
    let behind = stat.rsplit(')').next().unwrap();
    let ticks = behind
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap());
    ticks.sum::<u64>() as f64 / 100.0
}

#[test]
fn a_server_without_descriptors_to_spare_stays_healthy_and_calm() {
    let desk = Desk::with_catalog();
    let serve = ["catalog", "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0"];
    let server = Server::start_with(&desk, &serve, |command| {
        let mut outer = Command::new("sh");
        outer.args(["-c", "ulimit -n 100; exec \"$0\" \"$@\""]);
        outer.arg(command.get_program()).args(command.get_args());
        outer.current_dir(command.get_current_dir().unwrap());
        outer
    });
    let address = |at: usize, text: &str| {
        let mut lines = server.1.iter().filter_map(|line| line.strip_prefix(text));
        lines.nth(at).unwrap().to_owned()
    };
    let port = address(0, "listening on ").rsplit(':').next().unwrap().to_owned();
    let crowd: Vec<_> = (0..300)
        .filter_map(|_| std::net::TcpStream::connect(format!("127.0.0.1:{port}")).ok())
        .collect();
    assert!(crowd.len() > 200);
    let before = processor(&server);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let used = processor(&server) - before;
    assert!(used < 0.4, "{used} s of processor time in 2 s");
    for at in 0..2 {
        for _ in 0..20 {
            assert!(get(&address(at, "listening for HTTP on "), "/healthz").is_some());
        }
    }
}
