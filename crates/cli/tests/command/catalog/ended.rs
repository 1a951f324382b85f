//! Commands that are terminated, or that would never end by themselves.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::Desk;

/// Long, since other tests may occupy the processors.
const LIMIT: Duration = Duration::from_secs(120);

fn ended(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            panic!("still running after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Starts a command on an image of a registry that accepts connections and does not answer. Returns when it is waiting.
fn waiting_for_a_registry(desk: &Desk, arguments: &[&str]) -> (Child, TcpListener) {
    let registry = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let image = format!("127.0.0.1:{}/a:v1", registry.local_addr().unwrap().port());
    fs::create_dir_all(desk.path("temporary")).unwrap();
    let child = desk
        .command(&[arguments, &["--use-http", &image]].concat())
        .env("TMPDIR", desk.path("temporary"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stream, _) = registry.accept().unwrap();
    stream.read_exact(&mut [0]).unwrap();
    // Kept open for the lifetime of the process.
    std::mem::forget(stream);
    (child, registry)
}

fn temporary_files(desk: &Desk) -> usize {
    fs::read_dir(desk.path("temporary")).unwrap().count()
}

#[test]
fn a_silent_registry_does_not_keep_commands_from_ending_and_nothing_stays() {
    let desk = Desk::new();
    let serve = ["catalog", "serve", "--port", "0", "--termination-log", "none"];
    let prepare = [
        "catalog",
        "serve",
        "--cache-only",
        "--cache-dir",
        "cache",
        "--termination-log",
        "none",
    ];
    let others: [&[&str]; 3] = [&prepare, &["catalog", "render"], &["image", "inspect"]];
    let (mut child, _registry) = waiting_for_a_registry(&desk, &serve);
    send(&child, "-TERM");
    assert!(
        ended(&mut child).success(),
        "a server that is asked to stop has done its work"
    );
    assert_eq!(temporary_files(&desk), 0);
    for arguments in others {
        for (signal, code) in [("-TERM", 143), ("-INT", 130)] {
            let (mut child, _registry) = waiting_for_a_registry(&desk, arguments);
            assert_eq!(temporary_files(&desk), 1, "{arguments:?}");
            send(&child, signal);
            let status = ended(&mut child);
            assert_eq!(status.code(), Some(code), "{arguments:?} {signal}: {status}");
            assert_eq!(temporary_files(&desk), 0, "{arguments:?} {signal}");
        }
    }
    // Killed, it leaves its directory, which the next one deletes.
    let (mut child, _registry) = waiting_for_a_registry(&desk, &["catalog", "render"]);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!(temporary_files(&desk), 1);
    test_support::killed::age(&desk.path("temporary"));
    let (mut child, _registry) = waiting_for_a_registry(&desk, &["catalog", "render"]);
    assert_eq!(temporary_files(&desk), 1);
    send(&child, "-TERM");
    ended(&mut child);
    assert_eq!(temporary_files(&desk), 0);
}

/// A large catalog, so that writing it takes a while.
fn many_packages(desk: &Desk, packages: usize) {
    let mut text = String::new();
    for at in 0..packages {
        text.push_str(&format!(
            "---\nschema: olm.package\nname: p{at}\ndefaultChannel: c\n---\nschema: olm.channel\npackage: p{at}\nname: c\n\
             entries: [{{name: p{at}.v1}}]\n---\nschema: olm.bundle\npackage: p{at}\nname: p{at}.v1\nimage: r.io/p{at}:v1\n\
             properties: [{{type: olm.package, value: {{packageName: p{at}, version: 1.0.0}}}}]\n"
        ));
    }
    fs::create_dir_all(desk.path("many")).unwrap();
    fs::write(desk.path("many/catalog.yaml"), text).unwrap();
}

/// Starts a command that writes and stops it (SIGSTOP) as soon as its temporary directory exists next to the target,
/// which does not exist yet.
fn stopped_while_it_writes(desk: &Desk) -> Option<Child> {
    let mut child = desk
        .command(&["catalog", "migrate", "many", "written/out"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_writing = || {
        let mut stages = fs::read_dir(desk.path("written")).into_iter().flatten();
        stages.next().is_some()
    };
    while !is_writing() {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
    }
    send(&child, "-STOP");
    if is_writing() && !desk.path("written/out").exists() {
        return Some(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

#[test]
fn a_folder_in_the_making_goes_with_a_command_that_is_asked_to_end() {
    let desk = Desk::new();
    let mut ends = 0;
    // Often, for a signal may come at any moment from the first one on.
    for (signal, code) in [("-TERM", 143), ("-INT", 130)].repeat(10) {
        let mut packages = 500;
        let mut child = loop {
            many_packages(&desk, packages);
            let _ = fs::remove_dir_all(desk.path("written"));
            if let Some(child) = stopped_while_it_writes(&desk) {
                break child;
            }
            // This machine writes too fast.
            packages *= 2;
            assert!(packages < 50_000, "the command is never met while it writes");
        };
        send(&child, signal);
        send(&child, "-CONT");
        let status = ended(&mut child);
        // On a busy machine it may have written everything before it hears of the signal.
        let expected = if status.success() { 0 } else { code };
        assert_eq!(status.code(), Some(expected), "{signal}: {status}");
        assert!(!status.success() || desk.path("written/out").exists(), "{signal}");
        ends += usize::from(!status.success());
        let left: Vec<_> = fs::read_dir(desk.path("written")).unwrap().flatten().collect();
        let left: Vec<_> = left.iter().filter(|entry| entry.file_name() != "out").collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
    }
    assert!(ends > 0, "no signal came in time");
}

#[test]
fn pipes_in_a_catalog_are_refused() {
    let desk = Desk::with_catalog();
    let pipe = desk.path("catalog/pipe.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let commands: [&[&str]; 4] = [
        &[
            "catalog",
            "serve",
            "--port",
            "0",
            "--termination-log",
            "none",
            "catalog",
        ],
        &["catalog", "serve", "--cache-only", "--cache-dir", "cache", "catalog"],
        &["catalog", "validate", "catalog"],
        &["catalog", "render", "catalog"],
    ];
    for arguments in commands {
        let mut child = desk
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let status = ended(&mut child);
        let (mut out, mut err) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}");
        let text = format!("{out}{err}");
        assert!(
            text.contains("pipe.yaml") && text.contains("not a regular file"),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn a_document_that_is_too_large_is_refused_before_it_is_copied() {
    let desk = Desk::with_catalog();
    let path = desk.path("catalog/large.yaml");
    let large = fs::File::create(&path).unwrap();
    // Not written to disk: a file with a hole.
    for (megabytes, command, wanted) in [
        (700, "validate", "larger than 256 MiB"),
        (700, "render", "larger than 256 MiB"),
        (200, "render", "larger than 32 MiB"),
        (200, "validate", "larger than 32 MiB"),
    ] {
        large.set_len(megabytes << 20).unwrap();
        bounded(&desk, command, wanted);
    }
    fs::remove_file(&path).unwrap();
    let text = "x".repeat(200 << 20);
    let schema = "{\"schema\": \"some.schema\"}\n";
    for (large, wanted) in [
        (
            format!("{schema}{schema}{{\"text\": \"{text}\"}}"),
            "larger than 32 MiB",
        ),
        (format!("schema: some.schema\r\ntext: {text}"), "larger than 32 MiB"),
    ] {
        fs::write(&path, large).unwrap();
        bounded(&desk, "validate", wanted);
    }
    // Nothing is too large here, there is only much of it, and each line ends as on Windows.
    fs::write(
        &path,
        "schema: some.schema\r\n---\r\n".repeat(100_000) + "schema: [some.schema]",
    )
    .unwrap();
    bounded(&desk, "validate", "expected value for key");
}

/// Runs a command over the desk's catalog, which takes less than half a gigabyte.
#[track_caller]
fn bounded(desk: &Desk, command: &str, wanted: &str) {
    let usage = desk.path("usage");
    let program = env!("CARGO_BIN_EXE_olmkit");
    let output = Command::new("/usr/bin/env")
        .args(["time", "-f", "%M", "-o"])
        .arg(&usage)
        .args([program, "catalog", command])
        .arg(desk.path("catalog"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains(wanted), "{text}");
    // Without the program `time`, nothing is measured.
    match fs::read_to_string(&usage) {
        Ok(usage) => {
            let most: u64 = usage.lines().last().unwrap().parse().unwrap();
            assert!(most < 512 << 10, "{command}, {wanted}: {most} kB");
        }
        Err(_) => println!("the program `time` is missing: memory is not measured"),
    }
}
