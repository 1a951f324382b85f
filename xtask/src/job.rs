//! One check: the command, the resources it needs and the jobs it waits for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The part of the checks that a job belongs to, as the table at the end names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Compiles programs and tests.
    Build,
    /// Format, lints, dependencies, documentation and generated files.
    Verify,
    /// Test executables and documentation tests.
    Test,
    /// Flows on a real node.
    Node,
}

impl Stage {
    /// The name in the table and in failure reports.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Build => "build",
            Stage::Verify => "verify",
            Stage::Test => "test",
            Stage::Node => "e2e",
        }
    }
}

/// Resources that a job uses while it runs. The scheduler compares them with those of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Cores that the job keeps busy on average when nothing else runs.
    pub cores: f64,
    /// Peak memory in MiB, with all processes that the job starts.
    pub memory: u64,
    /// Duration in seconds on two idle cores. Longer jobs start first.
    pub seconds: u64,
}

impl Cost {
    /// The cost with these fields, in their order.
    pub const fn new(cores: f64, memory: u64, seconds: u64) -> Cost {
        Cost { cores, memory, seconds }
    }
}

/// A command that runs once, after others.
#[derive(Debug, Clone)]
pub struct Job {
    /// Unique name, as the table and the log file have it.
    pub name: String,
    /// Part of the checks.
    pub stage: Stage,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub directory: PathBuf,
    /// Variables that are set in addition to the inherited environment.
    pub environment: Vec<(String, String)>,
    /// Resources it uses.
    pub cost: Cost,
    /// Names of the jobs that must have succeeded before this one starts.
    pub after: Vec<String>,
    /// True if the job gets processor time only when those without this flag leave some.
    pub background: bool,
    /// The command that runs the job alone, so that you can repeat a failure.
    pub alone: String,
}

impl Job {
    /// A job that runs `command`, a line without quotes, in `directory`.
    pub fn new(name: &str, stage: Stage, command: &str, directory: &Path, cost: Cost) -> Job {
        Job {
            name: name.to_owned(),
            stage,
            command: command.split_whitespace().map(str::to_owned).collect(),
            directory: directory.to_owned(),
            environment: Vec::new(),
            cost,
            after: Vec::new(),
            background: true,
            alone: command.to_owned(),
        }
    }

    /// The same job, which starts when those with the given names have succeeded.
    pub fn after(mut self, names: &[&str]) -> Job {
        self.after.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    /// The same job with one more environment variable.
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Job {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// The same job, with precedence over the others.
    pub fn with_precedence(mut self) -> Job {
        self.background = false;
        self
    }

    /// The command, ready to start, below `xtask hold` if the path of this program is given.
    pub fn process(&self, holder: Option<&Path>) -> Command {
        let mut words = self.command.iter();
        let mut command = match holder {
            Some(holder) => Command::new(holder),
            None => Command::new(words.next().map_or("", String::as_str)),
        };
        if holder.is_some() {
            command.arg("hold");
            if self.background {
                command.arg("--background");
            }
            command.arg("--");
        }
        command.args(words).current_dir(&self.directory);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The name of its log file below the log directory.
    pub fn log(&self) -> String {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        self.name.chars().map(plain).collect::<String>() + ".log"
    }
}
