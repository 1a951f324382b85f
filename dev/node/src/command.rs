//! Runs programs, and records each command with its output.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use anyhow::{Context as _, bail};

/// The file that receives the commands of the current check.
#[derive(Clone, Default)]
pub struct Log(Rc<RefCell<Option<File>>>);

impl Log {
    /// Starts a new file, or none.
    pub fn set(&self, file: Option<File>) {
        *self.0.borrow_mut() = file;
    }

    /// Appends a text that ends with a line break.
    pub fn write(&self, text: &str) {
        if let Some(file) = self.0.borrow_mut().as_mut() {
            let end = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            // A log that cannot be written must not fail the check.
            let _ = write!(file, "{text}{end}");
        }
    }
}

/// A program with its arguments.
pub struct Invocation {
    command: Command,
    input: Option<String>,
    log: Log,
}

/// The end of a program.
pub struct Finished {
    /// Exit code, or -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Invocation {
    pub fn new(log: &Log, program: impl AsRef<OsStr>) -> Self {
        Self {
            command: Command::new(program),
            input: None,
            log: log.clone(),
        }
    }

    /// Adds arguments, separated by spaces.
    pub fn words(self, words: &str) -> Self {
        self.args(words.split_whitespace())
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Text for the program's standard input.
    pub fn input(mut self, text: impl Into<String>) -> Self {
        self.input = Some(text.into());
        self
    }

    /// Runs the program to its end, whatever its exit code is.
    pub fn finish(mut self) -> anyhow::Result<Finished> {
        let shown = self.shown();
        self.log.write(&format!("$ {shown}"));
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.stdin(if self.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        let mut child = self.command.spawn().with_context(|| format!("cannot start {shown}"))?;
        if let (Some(input), Some(mut stdin)) = (self.input.take(), child.stdin.take()) {
            // A program that ends early closes its input. Its exit code reports the failure.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().with_context(|| shown)?;
        let finished = Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        self.log.write(&finished.stdout);
        self.log.write(&finished.stderr);
        Ok(finished)
    }

    /// Runs the program, which must succeed, and returns its output without the last line breaks.
    pub fn run(self) -> anyhow::Result<String> {
        let shown = self.shown();
        let finished = self.finish()?;
        if finished.code != 0 {
            let said = if finished.stderr.trim().is_empty() {
                &finished.stdout
            } else {
                &finished.stderr
            };
            bail!("{shown}: exit code {}: {}", finished.code, said.trim());
        }
        Ok(finished.stdout.trim_end().to_owned())
    }

    /// Runs the program with this terminal's output. It must succeed.
    pub fn show(mut self) -> anyhow::Result<()> {
        let shown = self.shown();
        let status = self.command.status().with_context(|| format!("cannot start {shown}"))?;
        anyhow::ensure!(status.success(), "{shown}: {status}");
        Ok(())
    }

    /// Starts the program. Its output goes to a file.
    pub fn spawn(mut self, output: &Path) -> anyhow::Result<Child> {
        let shown = self.shown();
        self.log.write(&format!("$ {shown} &"));
        let file = File::create(output).with_context(|| output.display().to_string())?;
        self.command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        self.command.spawn().with_context(|| format!("cannot start {shown}"))
    }

    /// The command without the script that enters the cluster's network.
    fn shown(&self) -> String {
        let program = std::iter::once(self.command.get_program());
        let words: Vec<String> = program
            .chain(self.command.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let inside = words
            .first()
            .is_some_and(|program| program.ends_with("/dev/cluster/cluster"))
            && words.get(1).is_some_and(|word| word == "run");
        words.get(if inside { 2 } else { 0 }..).unwrap_or_default().join(" ")
    }
}
