//! Processes that cannot outlive this one.
//!
//! Each program runs below a shell that waits for either of two events: the program's end, or the end of a pipe whose
//! other side this process keeps open. The pipe closes when the handle is dropped and also when this process ends in any
//! way, so no process remains. This needs neither signal handlers nor a thread.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// Starts `"$@"`; ends it when standard input ends; ends with its exit code. KILL and not TERM: the state is thrown
/// away, and a server that shuts down in order takes seconds.
const HOLD: &str = r#"
exec 3<&0 </dev/null
"$@" 3<&- & program=$!
( while read -r _ <&3; do :; done; kill -9 $program 2>/dev/null ) & holder=$!
exec 3<&-
wait $program; code=$?
kill $holder 2>/dev/null
exit $code
"#;

/// Removes a directory after standard input has ended and the processes that write to it had a moment to exit.
const REMOVE: &str = r#"while read -r _; do :; done; for pause in 0.2 0.5 2; do sleep $pause; rm -rf "$1" 2>/dev/null; [ -e "$1" ] || break; done"#;

/// Lines of a log that an error shows.
const TAIL_LINES: usize = 20;

/// A program that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    holder: Child,
    log: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(String, OsString)>,
}

impl Process {
    /// Starts `program`, its output going to `logs/NAME.log`.
    pub(crate) fn start(
        name: &'static str,
        logs: &Path,
        program: &Path,
        arguments: impl IntoIterator<Item = OsString>,
        environment: &[(&str, OsString)],
    ) -> Result<Self, Error> {
        fs::create_dir_all(logs).map_err(Error::io("create the log directory", logs))?;
        let log = logs.join(format!("{name}.log"));
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        Ok(Self {
            name,
            holder: Self::spawn(&log, program, &arguments, &environment)?,
            log,
            program: program.to_owned(),
            arguments,
            environment,
        })
    }

    fn spawn(
        log: &Path,
        program: &Path,
        arguments: &[OsString],
        environment: &[(String, OsString)],
    ) -> Result<Child, Error> {
        let output = File::options().create(true).append(true).open(log);
        let output = output.map_err(Error::io("write the log", log))?;
        let errors = output.try_clone().map_err(Error::io("write the log", log))?;
        Command::new("sh")
            .args(["-c", HOLD, "sh"])
            .arg(program)
            .args(arguments)
            // A server runs for minutes with little memory. Fewer garbage collections save a twelfth of its CPU time.
            .env("GOGC", std::env::var_os("GOGC").unwrap_or_else(|| "400".into()))
            .envs(environment.iter().cloned())
            // With this variable OLM's HTTP client panics on objects without OLM's label.
            .env_remove("CI")
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            // An interrupt from the terminal reaches only this process. Closing the pipe ends the others.
            .process_group(0)
            .spawn()
            .map_err(Error::io("start", program))
    }

    /// The name it was started under.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Kills the program, as a crash does.
    pub(crate) fn kill(&mut self) {
        drop(self.holder.stdin.take());
        // The shell ends as soon as the program does, which gets KILL: this takes milliseconds.
        let _ = self.holder.wait();
    }

    /// Starts the program again, as it was started first.
    pub(crate) fn revive(&mut self) -> Result<(), Error> {
        self.holder = Self::spawn(&self.log, &self.program, &self.arguments, &self.environment)?;
        Ok(())
    }

    /// Fails if the program has exited.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.holder.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Error::Ended {
                name: self.name,
                status: status.to_string(),
                log: self.tail(),
            }),
            Err(source) => Err(Error::Io {
                what: "check a process",
                path: self.log.clone(),
                source,
            }),
        }
    }

    /// Calls `probe` until it succeeds. Fails when the program exits or the limit is exceeded.
    pub(crate) async fn wait_until<F>(&mut self, what: &'static str, limit: Duration, mut probe: F) -> Result<(), Error>
    where
        F: AsyncFnMut() -> Result<(), String>,
    {
        let end = Instant::now() + limit;
        loop {
            self.check()?;
            let reason = match tokio::time::timeout(Duration::from_secs(10), probe()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(reason)) => reason,
                Err(_) => "no response within 10 s".to_owned(),
            };
            if Instant::now() > end {
                return Err(Error::NotReady {
                    name: self.name,
                    what,
                    seconds: limit.as_secs(),
                    reason,
                    log: self.tail(),
                });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The name and the last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        format!("--- {}\n{}\n", self.name, self.tail())
    }

    fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines
            .iter()
            .skip(lines.len().saturating_sub(TAIL_LINES))
            .copied()
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Removes the state directory when this process ends without dropping its handle.
#[derive(Debug)]
pub(crate) struct Janitor {
    shell: Option<Child>,
}

impl Janitor {
    /// Starts watching `directory`.
    pub(crate) fn watch(directory: &Path) -> Result<Self, Error> {
        let shell = Command::new("sh")
            .args(["-c", REMOVE, "sh"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(Error::io("start", Path::new("sh")))?;
        Ok(Self { shell: Some(shell) })
    }

    /// Keeps the directory.
    pub(crate) fn none() -> Self {
        Self { shell: None }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if let Some(shell) = &mut self.shell {
            drop(shell.stdin.take());
            let _ = shell.wait();
        }
    }
}

/// Range of [`free_ports`]: below the ports that Linux uses for outgoing connections, which could take a port between
/// the check and the start of its server.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// Free ports on loopback that this process does not return twice. Processes start at different ports.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    static NEXT: OnceLock<AtomicUsize> = OnceLock::new();
    let next =
        NEXT.get_or_init(|| AtomicUsize::new(RandomState::new().hash_one(std::process::id()) as usize % PORTS.len()));
    let mut ports = [0; N];
    for port in &mut ports {
        *port = (0..PORTS.len())
            .map(|_| PORTS.start + (next.fetch_add(1, Ordering::Relaxed) % PORTS.len()) as u16)
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .ok_or_else(|| {
                Error::io("find a free port", Path::new("127.0.0.1"))(std::io::ErrorKind::AddrInUse.into())
            })?;
    }
    Ok(ports)
}

/// Reads a small file as a string.
pub(crate) fn read_to_string(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    File::open(path)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(Error::io("read", path))?;
    Ok(text)
}

/// Builds a list of arguments from strings and paths.
#[macro_export]
#[doc(hidden)]
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { vec![$(std::ffi::OsString::from($argument)),*] };
}
