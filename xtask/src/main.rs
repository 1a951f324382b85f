//! The checks of this repository: `cargo xtask --help`.

mod cargo;
mod command;
mod dependencies;
mod generated;
mod hold;
mod job;
mod lines;
mod plan;
mod prose;
mod ratios;
mod release;
mod report;
mod run;
mod sample;
mod schedule;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::{Parser, Subcommand};

use crate::job::{Job, Stage};
use crate::plan::Compiler;
use crate::report::Counts;
use crate::run::Outcome;
use crate::schedule::Machine;

/// Run the checks of this repository side by side.
///
/// Each job writes a log below target/checks. The last lines list times and failures.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run everything that CI runs: verify, test and, unless excluded, the flows on a node
    Ci {
        /// Leave out the flows on a node, which need root
        #[arg(long)]
        without_node: bool,
    },
    /// Run all tests
    Test {
        /// Run only jobs whose name contains one of these words, such as `olmkit-cli` or `cluster`
        names: Vec<String>,
    },
    /// Check format, lints, dependencies, documentation and generated files
    Verify,
    /// Count the idioms that the writing guide rejects
    Prose {
        /// Write the allowed counts
        #[arg(long)]
        update: bool,
        /// Print each line with an idiom
        #[arg(long, conflicts_with = "update")]
        list: bool,
        /// Print the word ratios of each page as a table
        #[arg(long, conflicts_with_all = ["update", "list"])]
        pages: bool,
        /// Commit of the pages
        #[arg(long, requires = "pages", value_name = "COMMIT")]
        at: Option<String>,
        /// Print this many random sentences of each kind of text as a table
        #[arg(long, conflicts_with_all = ["update", "list", "pages"], value_name = "NUMBER")]
        sample: Option<usize>,
        /// Any text: the same seed selects the same sentences
        #[arg(long, requires = "sample", default_value = "", hide_default_value = true)]
        seed: String,
    },
    /// Check licenses, bans, duplicates and sources of the dependencies with cargo-deny
    Dependencies {
        /// Also check advisories: `fetch` downloads their database, a directory contains one that cargo-deny has cloned
        #[arg(long, value_name = "DIRECTORY|fetch")]
        advisories: Option<String>,
    },
    /// Check the workflows of the repository with actionlint
    Workflows,
    /// Compare the files that Go programs print with the committed ones
    GoFiles {
        /// Write the files
        #[arg(long)]
        write: bool,
    },
    /// Render config/, bundle/ and catalog/ in a copy and compare them with the committed files
    Rendered,
    /// Write the documentation as a site, and check its links
    Site {
        /// Directory to write to, by default target/site
        directory: Option<PathBuf>,
    },
    /// Make the files of a release
    #[command(subcommand)]
    Release(release::Step),
    /// Print the code lines of the operators in this repository and of a scaffolded one, and fail above a goal or limit
    Lines,
    /// Print the warnings of a build, and fail if there are any
    #[command(hide = true)]
    Warnings {
        /// Flags of `cargo build`
        #[arg(last = true, required = true)]
        flags: Vec<String>,
    },
    /// Run a command and wait for the processes that it leaves behind
    #[command(hide = true)]
    Hold {
        /// Lower the priority of the command
        #[arg(long)]
        background: bool,
        /// Program and arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Run what a contributor runs before each commit: format, lints, and the quick tests and generated files of changed crates
    Check {
        /// Commit to compare with
        #[arg(long, default_value = "HEAD")]
        base: String,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Task::Hold { background, command } => hold::hold(&command, background),
        Task::Release(step) => release::run_step(&step).map(|()| ExitCode::SUCCESS),
        task => Checks::new()
            .and_then(|checks| checks.run(task))
            .map(|passed| ExitCode::from(u8::from(!passed))),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Directories, and the size of the machine.
struct Checks {
    root: PathBuf,
    target: PathBuf,
    cores: usize,
}

impl Checks {
    fn new() -> anyhow::Result<Checks> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = root.parent().context("the crate has no parent directory")?.to_owned();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target));
        let cores = std::thread::available_parallelism()?.get();
        Ok(Checks { root, target, cores })
    }

    /// The path of a program that the build makes.
    fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
        let output = String::from_utf8_lossy(&output.stdout);
        let host = output.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(self
            .target
            .join(host.context("rustc reports no host")?)
            .join("debug")
            .join(name))
    }

    /// Runs a command. False if a job failed.
    fn run(&self, task: Task) -> anyhow::Result<bool> {
        let root = self.root.as_path();
        let olmkit = self.program("olmkit")?;
        // On a contributor's machine, cargo has compiled crates without lints. CI begins with none.
        let compiler = match task {
            Task::Ci { .. } => Compiler::Clippy,
            _ => Compiler::Rustc,
        };
        let build = plan::build(root, compiler);
        let programs = plan::programs(root);
        let xtask = std::env::current_exe().context("cannot find this program")?;
        let verify = plan::verify(root, &xtask, compiler);
        let documentation = plan::documentation(root, compiler);
        match task {
            Task::Hold { .. } | Task::Release(_) => anyhow::bail!("not a check"),
            Task::Dependencies { advisories } => dependencies::check(root, advisories.as_deref()).map(|()| true),
            Task::Workflows => self.workflows().map(|()| true),
            Task::GoFiles { write } => generated::go_files(root, write).map(|()| true),
            Task::Warnings { flags } => self.warnings(&flags),
            Task::Rendered => generated::rendered(root, &self.target).map(|()| true),
            Task::Site { directory } => self.site(directory).map(|()| true),
            Task::Prose { pages: true, at, .. } => ratios::print(root, at.as_deref()).map(|()| true),
            Task::Prose {
                sample: Some(count),
                seed,
                ..
            } => sample::print(root, count, &seed).map(|()| true),
            Task::Prose { list: true, .. } => prose::list(root).map(|()| true),
            Task::Prose { update, .. } => prose::check(root, update).map(|()| true),
            Task::Lines => lines::print(root, &olmkit).map(|()| true),
            Task::Verify => self.execute([programs, build, verify].concat(), &|_| Vec::new()),
            Task::Test { names } => {
                let selected = |job: &Job| names.is_empty() || names.iter().any(|name| job.name.contains(name));
                let (all, control_plane) = (names.is_empty(), programs.into_iter().take(1).collect::<Vec<_>>());
                let mut jobs = build;
                jobs.extend(Some(documentation).filter(selected));
                if all {
                    jobs.extend(control_plane.clone());
                }
                let tests = |log: &str| {
                    let tests = plan::tests(&cargo::executables(log), self.cores);
                    let mut tests: Vec<Job> = tests.into_iter().filter(selected).collect();
                    // A few tests may not need the Go programs, whose first build takes minutes.
                    let needed = |go: &&Job| tests.iter().any(|test| test.after.contains(&go.name));
                    let missing: Vec<Job> = control_plane.iter().filter(|_| !all).filter(needed).cloned().collect();
                    tests.extend(missing);
                    tests
                };
                self.execute(jobs, &tests)
            }
            Task::Ci { without_node } => {
                let mut jobs = [programs, build, verify, vec![documentation]].concat();
                if without_node {
                    println!("skipped: the flows on a node (--without-node)");
                } else {
                    let (node, operator) = (self.program("node")?, self.program("memcached-operator")?);
                    jobs.push(plan::node(root, &node, &olmkit, &operator));
                }
                self.execute(jobs, &|log: &str| plan::tests(&cargo::executables(log), self.cores))
            }
            Task::Check { base } => {
                let changed = self.changed(&base)?;
                println!("changed: {}", changed.join(", "));
                let generated = ["format", "prose", "lints", "rendered files"];
                let site = changed
                    .iter()
                    .any(|path| path.starts_with("docs/") || path.starts_with("dev/site/"));
                let mut jobs: Vec<Job> = verify
                    .into_iter()
                    .filter(|job| generated.contains(&job.name.as_str()) || (site && job.name == "site"))
                    .collect();
                jobs.extend(build);
                println!("skipped: tests that start a control plane, and documentation tests (make test runs them)");
                let tests = |log: &str| {
                    let mut quick = cargo::executables(log);
                    quick.retain(|one| self.is_changed(one, &changed) && !plan::needs_control_plane(one));
                    plan::tests(&quick, self.cores)
                };
                self.execute(jobs, &tests)
            }
        }
    }

    /// Prints the warnings of a build with these flags. False if there are any.
    fn warnings(&self, flags: &[String]) -> anyhow::Result<bool> {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--message-format", "json"]).args(flags);
        let warnings = cargo::warnings(&command::output(cargo.current_dir(&self.root))?);
        for warning in &warnings {
            println!("{warning}");
        }
        println!("warnings: {}", warnings.len());
        Ok(warnings.is_empty())
    }

    /// Checks `.github/workflows` with actionlint. The first run builds it from its pinned module (9 seconds).
    fn workflows(&self) -> anyhow::Result<()> {
        command::run(
            Command::new("dev/tools/build.sh")
                .arg("actionlint")
                .current_dir(&self.root),
        )?;
        let mut lint = Command::new(command::cached_programs()?.join("actionlint"));
        // Without files, it checks those of the repository in the current directory.
        command::run(lint.args(["-shellcheck=", "-pyflakes="]).current_dir(&self.root))?;
        println!("workflows are valid");
        Ok(())
    }

    /// Writes the documentation as a site, with mdBook. Fails for a link without a target.
    fn site(&self, directory: Option<PathBuf>) -> anyhow::Result<()> {
        let cargo = |task: &str| {
            let mut cargo = Command::new("cargo");
            cargo
                .args([
                    task,
                    "-q",
                    "--locked",
                    "--manifest-path",
                    "dev/site/Cargo.toml",
                    "--target-dir",
                ])
                .arg(self.target.join("site-tool"))
                .current_dir(&self.root);
            cargo
        };
        command::output(&mut cargo("test"))?;
        let directory = match directory {
            Some(directory) => std::path::absolute(directory)?,
            None => self.target.join("site"),
        };
        command::run(cargo("run").args(["--", "."]).arg(directory))
    }

    /// Paths that differ from a commit, relative to the root.
    fn changed(&self, base: &str) -> anyhow::Result<Vec<String>> {
        let mut paths = Vec::new();
        for arguments in [
            &["diff", "--name-only", base][..],
            &["ls-files", "--others", "--exclude-standard"],
        ] {
            let output = Command::new("git")
                .args(arguments)
                .current_dir(&self.root)
                .output()
                .context("cannot run git")?;
            ensure!(
                output.status.success(),
                "git {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
            paths.extend(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned));
        }
        Ok(paths)
    }

    /// Returns true if a path of the executable's package changed. The operator's package is the root without its members.
    fn is_changed(&self, executable: &cargo::Executable, changed: &[String]) -> bool {
        let Ok(directory) = executable.directory.strip_prefix(&self.root) else {
            return false;
        };
        let own = |path: &&String| match directory.as_os_str().is_empty() {
            true => ["src/", "tests/", "config/"]
                .iter()
                .any(|prefix| path.starts_with(prefix)),
            false => Path::new(path.as_str()).starts_with(directory),
        };
        changed.iter().any(|path| own(&path))
    }

    /// Runs the jobs, and those that `tests` makes from the output of the build, and prints the results.
    fn execute(&self, jobs: Vec<Job>, tests: &dyn Fn(&str) -> Vec<Job>) -> anyhow::Result<bool> {
        let machine = Machine {
            cores: self.cores as f64,
            memory: available_memory().unwrap_or(u64::MAX),
        };
        let logs = self.target.join("checks");
        let begin = Instant::now();
        let caches = self.caches();
        let idle = idle_ticks();
        let terminal = std::io::stdout().is_terminal();
        let holder = std::env::current_exe().context("cannot find this program")?;
        let results = run::run(jobs, machine, &logs, Some(&holder), |job, outcome| {
            print_line(job, outcome, begin, terminal);
            let log = std::fs::read_to_string(&outcome.log).unwrap_or_default();
            if job.name == plan::TESTS_JOB && outcome.passed {
                tests(&log)
            } else {
                Vec::new()
            }
        })?;
        let passed = self.summarize(&results, begin, idle)?;
        println!("{caches}");
        Ok(passed)
    }

    /// The results of earlier runs that this one does not build again.
    fn caches(&self) -> String {
        let count = |directory: PathBuf, is_one: &dyn Fn(&Path) -> bool| {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.filter(|entry| is_one(&entry.path())).count()
        };
        let programs = command::cached_programs().map_or(0, |directory| {
            count(directory, &|path| {
                path.is_file() && path.extension().is_none_or(|end| end != "pin")
            })
        });
        let target = format!("{}-unknown-linux-gnu/debug/deps", std::env::consts::ARCH);
        let libraries = count(self.target.join(target), &|path| {
            path.extension().is_some_and(|end| end == "rlib")
        });
        format!("This run began with {programs} Go programs and {libraries} compiled Rust libraries.")
    }

    /// Prints the table, the failures and the counts. False if a job failed.
    fn summarize(&self, results: &[(Job, Outcome)], begin: Instant, idle: Option<f64>) -> anyhow::Result<bool> {
        let table = report::table(results, self.cores as f64);
        let mut output = std::io::stdout().lock();
        writeln!(output, "\n{table}")?;
        if let Some(share) = idle.zip(idle_ticks()).map(|(before, after)| after - before) {
            let ticks =
                begin.elapsed().as_secs_f64() * self.cores as f64 * rustix::param::clock_ticks_per_second() as f64;
            writeln!(
                output,
                "The machine was idle for {:.0} % of the time of its {} cores.\n",
                100.0 * share / ticks,
                self.cores
            )?;
        }
        let failed: Vec<&(Job, Outcome)> = results.iter().filter(|(_, outcome)| !outcome.passed).collect();
        for (job, outcome) in &failed {
            writeln!(output, "{}", report::failure(job, outcome))?;
        }
        for (stage, word) in [(Stage::Node, "e2e"), (Stage::Test, "tests")] {
            let logs = results.iter().filter(|(job, _)| job.stage == stage);
            let counts = logs
                .map(|(_, outcome)| Counts::read(&std::fs::read_to_string(&outcome.log).unwrap_or_default()))
                .fold(Counts::default(), Counts::and);
            if counts != Counts::default() {
                writeln!(
                    output,
                    "{word}: {} passed, {} failed, {} skipped",
                    counts.passed, counts.failed, counts.ignored
                )?;
            }
        }
        let seconds = begin.elapsed().as_secs();
        let summary = format!(
            "{} of {} jobs passed in {} min {} s",
            results.len() - failed.len(),
            results.len(),
            seconds / 60,
            seconds % 60
        );
        writeln!(output, "{summary}")?;
        Ok(failed.is_empty())
    }
}

/// One line for an ended job.
fn print_line(job: &Job, outcome: &Outcome, begin: Instant, terminal: bool) {
    let (word, color) = if outcome.passed {
        ("ok", "\x1b[32m")
    } else {
        ("FAILED", "\x1b[31m")
    };
    let word = if terminal {
        format!("{color}{word:<6}\x1b[0m")
    } else {
        format!("{word:<6}")
    };
    let cpu = outcome.cpu.map_or(String::new(), |cpu| format!(", {cpu:.0} s of CPU"));
    println!(
        "[{:>4} s] {word} {}: {} ({:.0} s{cpu})",
        begin.elapsed().as_secs(),
        job.stage.name(),
        job.name,
        outcome.wall
    );
}

/// Memory that the system can give to new processes, in MiB.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1024)
}

/// Ticks that all cores together have been idle since the system started.
fn idle_ticks() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    // user, nice, system, idle, iowait
    let fields = text.lines().next()?.split_whitespace().skip(4).take(2);
    fields.map(|field| field.parse::<f64>().ok()).sum()
}
