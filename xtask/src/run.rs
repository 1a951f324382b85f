//! Runs jobs side by side and records how long each took and how much processor time it used.

// An index is that of a job in the list, which only grows.
#![allow(clippy::indexing_slicing)]

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::job::Job;
use crate::schedule::{self, Machine, State};

/// Time without an ended job after which the names of the running ones are printed.
const SILENCE: Duration = Duration::from_secs(60);

/// The result of one job.
#[derive(Debug)]
pub struct Outcome {
    /// True if the command succeeded. A job that was skipped did not.
    pub passed: bool,
    /// The reason if the command did not run or did not end by itself.
    pub reason: Option<String>,
    /// Seconds from the beginning of all checks to the start of this job.
    pub started: f64,
    /// Seconds from the start of this job to its end.
    pub wall: f64,
    /// Processor seconds of the command and of all processes that it waited for, if the system reports them.
    pub cpu: Option<f64>,
    /// File with everything that the command printed.
    pub log: PathBuf,
}

/// An event that the loop waits for.
enum Event {
    Ended(usize, Ended),
    Signal(i32),
}

/// The end of a command.
struct Ended {
    passed: bool,
    reason: Option<String>,
    cpu: Option<f64>,
}

/// Runs all jobs, each as soon as its prerequisites have passed and the machine has room for it. After a failure the
/// others continue, so that one run shows all failures. `ended` is called after each job and returns further jobs,
/// which are known only then. The results have the order of the jobs. With `holder`, the path of this program, each
/// command runs below [`hold`](crate::hold), so that the processor time of its orphans counts.
///
/// # Errors
/// If the log directory cannot be written, or after SIGINT or SIGTERM, which are passed on to the running jobs.
pub fn run(
    mut jobs: Vec<Job>,
    machine: Machine,
    logs: &Path,
    holder: Option<&Path>,
    mut ended: impl FnMut(&Job, &Outcome) -> Vec<Job>,
) -> anyhow::Result<Vec<(Job, Outcome)>> {
    fs::create_dir_all(logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let (events, inbox) = mpsc::channel();
    forward_signals(events.clone())?;
    let begin = Instant::now();
    let mut states = vec![State::Waiting; jobs.len()];
    let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
    let mut running: Vec<Running> = Vec::new();
    let mut interrupted = None;
    loop {
        let mut over: Vec<(usize, Outcome)> = Vec::new();
        while let Some(index) = schedule::next(&jobs, &states, machine).filter(|_| interrupted.is_none()) {
            let job = &jobs[index];
            match start(job, &logs.join(job.log()), holder) {
                Ok(child) => {
                    let (events, pid, started) = (events.clone(), pid(&child)?, Instant::now());
                    running.push(Running { index, pid, started });
                    std::thread::spawn(move || events.send(Event::Ended(index, wait(child))));
                    states[index] = State::Running;
                }
                Err(error) => {
                    over.push((index, not_run(format!("{error:#}"), begin, logs.join(job.log()))));
                    states[index] = State::Failed;
                }
            }
        }
        while let Some(index) = schedule::hopeless(&jobs, &states) {
            let job = &jobs[index];
            let reason = format!("not run: one of {} failed", job.after.join(", "));
            over.push((index, not_run(reason, begin, logs.join(job.log()))));
            states[index] = State::Failed;
        }
        if over.is_empty() {
            if running.is_empty() {
                break;
            }
            match inbox.recv_timeout(SILENCE) {
                Ok(Event::Ended(index, end)) => {
                    let position = running.iter().position(|job| job.index == index);
                    let started = position.map_or(begin, |position| running.swap_remove(position).started);
                    let outcome = Outcome {
                        passed: end.passed,
                        reason: end.reason,
                        started: (started - begin).as_secs_f64(),
                        wall: started.elapsed().as_secs_f64(),
                        cpu: end.cpu,
                        log: logs.join(jobs[index].log()),
                    };
                    states[index] = if end.passed { State::Passed } else { State::Failed };
                    over.push((index, outcome));
                }
                Ok(Event::Signal(signal)) => {
                    interrupted = Some(signal);
                    eprintln!("interrupted: waiting for {}", names(&jobs, &running));
                    for job in &running {
                        // An error means that the process has ended.
                        let _ = rustix::process::kill_process_group(job.pid, Signal::TERM);
                    }
                }
                Err(_) => println!(
                    "[{:>4} s] running: {}",
                    begin.elapsed().as_secs(),
                    names(&jobs, &running)
                ),
            }
        }
        for (index, outcome) in over {
            jobs.extend(ended(&jobs[index], &outcome));
            states.resize(jobs.len(), State::Waiting);
            outcomes.push((index, outcome));
        }
    }
    if let Some(signal) = interrupted {
        anyhow::bail!("interrupted by signal {signal}");
    }
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(jobs
        .into_iter()
        .zip(outcomes.into_iter().map(|(_, outcome)| outcome))
        .collect())
}

/// A started job.
struct Running {
    index: usize,
    pid: Pid,
    started: Instant,
}

fn names(jobs: &[Job], running: &[Running]) -> String {
    let name = |one: &Running| format!("{} ({} s)", jobs[one.index].name, one.started.elapsed().as_secs());
    running.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn not_run(reason: String, begin: Instant, log: PathBuf) -> Outcome {
    Outcome {
        passed: false,
        reason: Some(reason),
        started: begin.elapsed().as_secs_f64(),
        wall: 0.0,
        cpu: None,
        log,
    }
}

fn start(job: &Job, log: &Path, holder: Option<&Path>) -> anyhow::Result<Child> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = job.process(holder);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    command
        // Signals from a terminal reach only this process, which passes them on.
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", job.command.first().map_or("", String::as_str)))
}

fn pid(child: &Child) -> anyhow::Result<Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .context("the process has no valid number")
}

/// Waits for the end of a process. Its processor time is read while it is a zombie, when that of its children is complete.
fn wait(mut child: Child) -> Ended {
    let cpu = pid(&child).ok().and_then(|pid| {
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok()?;
        processor_seconds(&fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?)
    });
    let (passed, reason) = match child.wait() {
        Ok(status) if status.success() => (true, None),
        Ok(status) => (false, Some(status.to_string())),
        Err(error) => (false, Some(format!("cannot wait for it: {error}"))),
    };
    Ended { passed, reason, cpu }
}

/// The processor seconds in a line of /proc/PID/stat: user and system time of the process and of its children.
fn processor_seconds(stat: &str) -> Option<f64> {
    // The second field is the name in parentheses, which may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let times: Option<Vec<f64>> = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|field| field.parse().ok())
        .collect();
    let ticks: f64 = times.filter(|times| times.len() == 4)?.iter().sum();
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}

/// Sends SIGINT and SIGTERM of this process to the loop.
fn forward_signals(events: Sender<Event>) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::job::{Cost, Stage};

    const MACHINE: Machine = Machine {
        cores: 2.0,
        memory: 1000,
    };

    fn shell(name: &str, script: &str) -> Job {
        let cost = Cost {
            cores: 0.1,
            memory: 1,
            seconds: 1,
        };
        let mut job = Job::new(name, Stage::Test, "sh -c", Path::new("/"), cost);
        job.command.push(script.to_owned());
        job
    }

    #[test]
    fn a_failed_job_fails_those_that_wait_for_it_and_no_others() {
        let logs = tempfile::tempdir().unwrap();
        let jobs = vec![
            shell("broken", "echo reason; exit 3"),
            shell("dependent", "true").after(&["broken"]),
            shell("independent", "true"),
        ];
        let mut ended = Vec::new();
        let results = run(jobs, MACHINE, logs.path(), None, |job, _| {
            ended.push(job.name.clone());
            Vec::new()
        });
        let outcomes: Vec<Outcome> = results.unwrap().into_iter().map(|(_, outcome)| outcome).collect();
        let passed: Vec<bool> = outcomes.iter().map(|outcome| outcome.passed).collect();
        assert_eq!(passed, [false, false, true]);
        assert_eq!(outcomes[0].reason.as_deref(), Some("exit status: 3"));
        assert_eq!(outcomes[1].reason.as_deref(), Some("not run: one of broken failed"));
        assert_eq!(fs::read_to_string(&outcomes[0].log).unwrap(), "reason\n");
        assert_eq!(ended.len(), 3);
    }

    #[test]
    fn a_job_sees_its_variables_and_directory() {
        let logs = tempfile::tempdir().unwrap();
        let jobs = vec![shell("shows", "echo $WORD; pwd").set("WORD", "value")];
        let results = run(jobs, MACHINE, logs.path(), None, |_, _| Vec::new()).unwrap();
        assert_eq!(fs::read_to_string(&results[0].1.log).unwrap(), "value\n/\n");
    }

    #[test]
    fn jobs_that_another_one_yields_run_too() {
        let logs = tempfile::tempdir().unwrap();
        let more = |job: &Job, _: &Outcome| match job.name.as_str() {
            "first" => vec![shell("second", "true").after(&["first"])],
            _ => Vec::new(),
        };
        let results = run(vec![shell("first", "true")], MACHINE, logs.path(), None, more).unwrap();
        let names: Vec<&str> = results.iter().map(|(job, _)| job.name.as_str()).collect();
        assert_eq!(names, ["first", "second"]);
        assert!(results.iter().all(|(_, outcome)| outcome.passed));
    }

    #[test]
    fn processor_time_includes_children_that_were_waited_for() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194560 120 0 0 0 100 50 30 20 20 0 1 0 55 0 0";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(processor_seconds(line), Some(200.0 / ticks));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_failure_with_its_name() {
        let logs = tempfile::tempdir().unwrap();
        let mut job = shell("absent", "");
        job.command = vec!["/nonexistent/program".to_owned()];
        let results = run(vec![job], MACHINE, logs.path(), None, |_, _| Vec::new()).unwrap();
        let reason = results[0].1.reason.clone().unwrap();
        assert!(reason.contains("/nonexistent/program"), "{reason}");
    }
}
