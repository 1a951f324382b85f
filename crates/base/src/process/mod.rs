//! Starts other programs: git, credential helpers, external validators, container tools.
//!
//! Each run has an environment, a time limit and limits on the output. A [`Launcher`] is passed to the code that starts
//! programs, so that the caller controls their environment and time limit.
//!
//! If the caller handles signals ([`on_first_start`]), each program gets its own process group. A time limit then ends
//! the program and everything that it has started, and [`forward`] and [`end_all`] do the same for Ctrl-C.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::limits::{self, Limit};

mod groups;

pub use groups::{Ended as AllEnded, end_all, forward, on_first_start};

use groups::Group;

/// Variables that every program gets: paths of programs, settings and temporary files, and the language.
const BASE: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];
/// Bytes of error output that a message can use.
const ERRORS: u64 = 64 << 10;
/// Poll interval for a program that has closed its output.
const PAUSE: Duration = Duration::from_millis(2);
/// Time between the request to end and the kill. Git removes its lock files in this time.
const GRACE: Duration = Duration::from_secs(2);

/// The variables that a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// The base variables, such as `PATH` and `HOME`, and those with these names. A name that ends in `*` is a prefix.
    Only(&'static [&'static str]),
    /// All variables except those with these names or prefixes.
    Except(&'static [&'static str]),
}

impl Environment {
    fn has(self, name: &OsStr) -> bool {
        let listed = |names: &[&str]| {
            let name = name.to_string_lossy();
            names.iter().any(|listed| match listed.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == *listed,
            })
        };
        match self {
            Self::Only(names) => listed(BASE) || name.to_string_lossy().starts_with("LC_") || listed(names),
            Self::Except(names) => !listed(names),
        }
    }
}

/// One run of a program.
#[derive(Debug)]
pub struct Run<'a> {
    /// Name or path of the program.
    pub program: &'a OsStr,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its working directory, unless it is ours.
    pub directory: Option<PathBuf>,
    /// The variables that it inherits from our environment.
    pub environment: Environment,
    /// Variables to set in addition.
    pub variables: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub input: Vec<u8>,
    /// True if it reads our input instead, for example for a prompt.
    pub asks: bool,
    /// True if it may ask the user at the terminal, for example for a passphrase. On a terminal it then stays in our
    /// process group: others cannot read from the terminal. A time limit then ends only the program, and Ctrl-C still
    /// reaches everything that it has started.
    pub prompts: bool,
    /// True if its standard error is inherited. Otherwise the start of it is part of the result.
    pub shows_errors: bool,
    /// Maximum bytes of output.
    pub output: &'static Limit,
    /// Time limit.
    pub time: Duration,
    /// Maximum bytes of its data in memory. Each program that it starts has the same limit for itself. Linux only.
    pub memory: Option<u64>,
}

impl<'a> Run<'a> {
    /// A run without arguments, input and further variables.
    pub fn new(program: &'a OsStr, environment: Environment) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            directory: None,
            environment,
            variables: Vec::new(),
            input: Vec::new(),
            asks: false,
            prompts: false,
            shows_errors: false,
            output: &limits::PROGRAM_OUTPUT,
            time: Duration::from_secs(600),
            memory: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }
}

/// Result of a program.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its output.
    pub output: Vec<u8>,
    /// The start of its error output. Empty if that was shown.
    pub errors: Vec<u8>,
}

/// Starts programs with these variables.
#[derive(Debug, Clone)]
pub struct Launcher {
    variables: Vec<(OsString, OsString)>,
    most_time: Duration,
}

impl Default for Launcher {
    fn default() -> Self {
        Self::new(std::env::vars_os())
    }
}

impl Launcher {
    /// A launcher whose programs get no other variables than these.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            most_time: Duration::MAX,
        }
    }

    /// Sets the time that no program may exceed, whatever its own limit is.
    #[must_use]
    pub fn most_time(mut self, time: Duration) -> Self {
        self.most_time = time;
        self
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// It cannot be started, runs for too long ([`io::ErrorKind::TimedOut`]) or prints too much ([`io::ErrorKind::FileTooLarge`]).
    /// In the last two cases it is killed, with everything that it has started if it has its own process group.
    pub fn run(&self, run: Run<'_>) -> io::Result<Ended> {
        let mut command = Command::new(run.program);
        let inherited = self.variables.iter().filter(|(name, _)| run.environment.has(name));
        command
            .args(&run.arguments)
            .env_clear()
            .envs(inherited.map(|(name, value)| (name, value)))
            .envs(run.variables.iter().map(|(name, value)| (name, value)))
            .stdin(match run.input.is_empty() {
                _ if run.asks => Stdio::inherit(),
                true => Stdio::null(),
                false => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(if run.shows_errors {
                Stdio::inherit()
            } else {
                Stdio::piped()
            });
        if let Some(directory) = &run.directory {
            command.current_dir(directory);
        }
        let time = run.time.min(self.most_time);
        let end = Instant::now().checked_add(time);
        let mut group = Group::start(command, run.asks || run.prompts)?;
        let ended = follow(&mut group, run, end);
        if ended.is_err() {
            group.kill();
        }
        ended.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => {
                let reason = format!("no end within {} seconds", time.as_secs_f64());
                io::Error::new(io::ErrorKind::TimedOut, reason)
            }
            _ => error,
        })
    }
}

/// Feeds a program and reads its output. Threads that wait for a grandchild are detached.
fn follow(group: &mut Group, run: Run<'_>, end: Option<Instant>) -> io::Result<Ended> {
    let child = group.child();
    if let Some(memory) = run.memory {
        limit_memory(child, memory)?;
    }
    if let Some(mut input) = child.stdin.take() {
        let bytes = run.input;
        // A program that does not read its input still gets to answer.
        thread::spawn(move || drop(input.write_all(&bytes)));
    }
    let output = child.stdout.take().map(|from| in_background(from, run.output.get()));
    let errors = child.stderr.take().map(|from| in_background(from, ERRORS));
    let output = received(output, end)?;
    if output.len() as u64 > run.output.get() {
        return Err(run.output.exceeded());
    }
    let mut errors = received(errors, end)?;
    errors.truncate(usize::try_from(ERRORS).unwrap_or(usize::MAX));
    loop {
        if let Some(status) = group.ended()? {
            return Ok(Ended { status, output, errors });
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(PAUSE);
    }
}

/// A program that reads a device or a large file into memory then reports an error and ends.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child, bytes: u64) -> io::Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    match prlimit(Some(Pid::from_child(child)), Resource::Data, limit) {
        // It has ended, or we have less ourselves.
        Ok(_) | Err(rustix::io::Errno::SRCH | rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child, _: u64) -> io::Result<()> {
    Ok(())
}

/// Reads at most one byte more than the limit.
fn in_background(from: impl Read + Send + 'static, limit: u64) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = from.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn received(from: Option<Receiver<io::Result<Vec<u8>>>>, end: Option<Instant>) -> io::Result<Vec<u8>> {
    let Some(from) = from else { return Ok(Vec::new()) };
    match end {
        None => from.recv().map_err(io::Error::other)?,
        Some(end) => {
            let left = end.saturating_duration_since(Instant::now());
            from.recv_timeout(left).map_err(|_| io::ErrorKind::TimedOut)?
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shell waits for its limit, which the second program inherits.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_takes_too_much_memory_fails() {
        let script = "dd if=/dev/zero of=/dev/null bs=400M count=1 2> /dev/null && echo whole || echo failed";
        let limited = format!("while [ $(ulimit -d) != 102400 ]; do sleep 0.01; done; {script}");
        let mut run = shell(&limited);
        run.memory = Some(100 << 20);
        assert_eq!(launcher().run(run).unwrap().output, b"failed\n");
        assert_eq!(launcher().run(shell(script)).unwrap().output, b"whole\n");
    }

    fn shell(script: &str) -> Run<'_> {
        Run::new(OsStr::new("sh"), Environment::Only(&["KEPT", "ALSO_*"])).arguments(["-c", script])
    }

    fn launcher() -> Launcher {
        let own = [
            ("PATH", "/usr/bin:/bin"),
            ("KEPT", "1"),
            ("ALSO_KEPT", "2"),
            ("TOKEN", "secret"),
            ("GIT_DIR", "/x"),
        ];
        Launcher::new(own.map(|(name, value)| (name.into(), value.into())))
    }

    fn text(run: Run<'_>) -> String {
        String::from_utf8(launcher().run(run).unwrap().output).unwrap()
    }

    #[test]
    fn a_program_gets_the_listed_variables_only() {
        let print = "echo ${KEPT-} ${ALSO_KEPT-} ${TOKEN-} ${GIT_DIR-}";
        assert_eq!(text(shell(print)), "1 2\n");
        let except = Run {
            environment: Environment::Except(&["GIT_*"]),
            ..shell(print)
        };
        assert_eq!(text(except), "1 2 secret\n");
    }

    #[test]
    fn a_program_that_prints_too_much_is_killed() {
        let run = Run {
            output: &limits::SETTINGS_FILE,
            ..shell(
                "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done | cat",
            )
        };
        let error = launcher().run(run).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        for script in ["sleep 60", "exec >&- 2>&-; sleep 60", "sleep 60 & echo started"] {
            let error = launcher()
                .most_time(Duration::from_millis(200))
                .run(shell(script))
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{script}");
        }
    }

    /// Waits until a process has ended. Its new parent may be slow to reap it.
    fn wait_until_gone(pid: &str) {
        let start = Instant::now();
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while is_there() {
            assert!(start.elapsed() < Duration::from_secs(120), "{pid} is still there");
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn a_time_limit_ends_all_child_processes() {
        on_first_start(|| {});
        let folder = tempfile::tempdir().unwrap();
        // Ignored signals are inherited. The second program ends, and what it has started keeps the output open.
        for (name, script) in [
            (
                "waits",
                "trap '' TERM INT HUP; sh -c 'sleep 600 & echo $! > \"$0\"; wait' \"$0\"",
            ),
            ("ends", "trap '' TERM INT HUP; sleep 600 & echo $! > \"$0\""),
        ] {
            let file = folder.path().join(name);
            let mut run = shell(script);
            run.arguments.push(file.clone().into_os_string());
            let error = launcher().most_time(Duration::from_millis(500)).run(run).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{name}");
            // On a busy machine, the limit may be over before anything has started.
            if let Ok(pid) = std::fs::read_to_string(&file) {
                wait_until_gone(pid.trim());
            }
        }
    }

    #[test]
    fn input_output_errors_and_status_are_those_of_the_program() {
        let run = Run {
            input: b"hello".to_vec(),
            ..shell("cat; echo problem >&2; exit 3")
        };
        let ended = launcher().run(run).unwrap();
        assert_eq!((ended.status.code(), ended.output.as_slice()), (Some(3), &b"hello"[..]));
        assert_eq!(ended.errors, b"problem\n");
        // Unread input does not keep it from ending either.
        let run = Run {
            input: vec![b'x'; 1 << 20],
            ..shell("exit 0")
        };
        assert!(launcher().run(run).unwrap().status.success());
    }
}
