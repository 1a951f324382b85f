//! The lines after a run: a table of all jobs, the number of tests, and each failure with the command that repeats it.

use std::fmt::Write as _;
use std::fs;

use crate::job::{Job, Stage};
use crate::run::Outcome;

/// Lines of a log that a failure shows if no single test is to blame.
const TAIL: usize = 40;

/// Lines of one failed test's output.
const OUTPUT: usize = 30;

/// Numbers of tests, as libtest and the scripts in `dev/` print them at their end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that run only on request.
    pub ignored: usize,
}

impl Counts {
    /// Adds up the result lines in a log: `test result: ok. 3 passed; 0 failed; 1 ignored; …` or `3 passed, 0 failed`.
    pub fn read(log: &str) -> Counts {
        let mut counts = Counts::default();
        for line in log.lines() {
            let numbers = match line.strip_prefix("test result: ") {
                Some(rest) => rest.split_once(". ").map_or("", |(_, numbers)| numbers),
                None if line.starts_with(|first: char| first.is_ascii_digit()) => line,
                None => continue,
            };
            for part in numbers.split([';', ',']) {
                let Some((number, word)) = part.trim().split_once(' ') else {
                    continue;
                };
                let Ok(number) = number.parse::<usize>() else { continue };
                match word {
                    "passed" => counts.passed += number,
                    "failed" => counts.failed += number,
                    "ignored" => counts.ignored += number,
                    _ => (),
                }
            }
        }
        counts
    }

    /// The sum of both.
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }
}

/// The table as Markdown, longest job first within each stage: wall time, processor time, and the share of the machine's
/// cores that the job left idle while it ran.
pub fn table(results: &[(Job, Outcome)], cores: f64) -> String {
    let mut text = String::from("| stage | job | start | wall | CPU | idle |\n|---|---|---:|---:|---:|---:|\n");
    let mut rows: Vec<&(Job, Outcome)> = results.iter().collect();
    rows.sort_by(|(a, x), (b, y)| (a.stage as u8).cmp(&(b.stage as u8)).then(y.wall.total_cmp(&x.wall)));
    for (job, outcome) in rows {
        let cpu = outcome.cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.0} s"));
        let idle = outcome
            .cpu
            .map_or("-".to_owned(), |cpu| format!("{:.0} %", idle(cpu, outcome.wall, cores)));
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} s | {:.0} s | {cpu} | {idle} |",
            job.stage.name(),
            job.name,
            outcome.started,
            outcome.wall
        );
    }
    for stage in [Stage::Build, Stage::Verify, Stage::Test, Stage::Node] {
        let of_stage = results.iter().filter(|(job, _)| job.stage == stage);
        let cpu: Vec<f64> = of_stage.filter_map(|(_, outcome)| outcome.cpu).collect();
        if !cpu.is_empty() {
            let _ = writeln!(
                text,
                "| {} | **sum** | | | {:.0} s | |",
                stage.name(),
                cpu.iter().sum::<f64>()
            );
        }
    }
    let ends = results.iter().map(|(_, outcome)| outcome.started + outcome.wall);
    let wall = ends.fold(0.0, f64::max);
    let cpu: f64 = results.iter().filter_map(|(_, outcome)| outcome.cpu).sum();
    let _ = writeln!(
        text,
        "| all | **sum** | | {wall:.0} s | {cpu:.0} s | {:.0} % |",
        idle(cpu, wall, cores)
    );
    text
}

fn idle(cpu: f64, wall: f64, cores: f64) -> f64 {
    (100.0 * (1.0 - cpu / (wall * cores).max(f64::MIN_POSITIVE))).clamp(0.0, 100.0)
}

/// Information about a failed job: stage and name, the failed tests with the end of their output, the command that runs
/// each alone, and the log.
pub fn failure(job: &Job, outcome: &Outcome) -> String {
    let log = fs::read(&outcome.log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let mut text = format!("=== {} failed: {}\n", job.stage.name(), job.name);
    let tests = failed_tests(&log);
    for test in &tests {
        let output = section(&log, test);
        let _ = writeln!(text, "--- {test}");
        for line in last_lines(&output, OUTPUT) {
            let _ = writeln!(text, "{line}");
        }
    }
    let checks = failed_checks(&log);
    text.push_str(&checks);
    if tests.is_empty() && checks.is_empty() && outcome.wall > 0.0 {
        for line in last_lines(&log, TAIL) {
            let _ = writeln!(text, "{line}");
        }
    }
    if let Some(reason) = &outcome.reason {
        let _ = writeln!(text, "reason: {reason}");
    }
    if tests.is_empty() || job.stage != Stage::Test {
        let _ = writeln!(text, "run it alone: {}", job.alone);
    }
    for test in tests.iter().filter(|_| job.stage == Stage::Test) {
        let _ = writeln!(text, "run it alone: {} --exact {test}", job.alone);
    }
    if outcome.wall > 0.0 {
        let _ = writeln!(text, "log: {}", outcome.log.display());
    }
    text
}

/// Names in the list that libtest prints before its result line.
fn failed_tests(log: &str) -> Vec<String> {
    let mut tests: Vec<String> = Vec::new();
    let mut within = false;
    for line in log.lines() {
        match line.strip_prefix("    ") {
            _ if line == "failures:" => within = true,
            Some(name) if within && !tests.iter().any(|test| test == name.trim()) && !name.trim().contains(' ') => {
                tests.push(name.trim().to_owned());
            }
            _ if line.starts_with("test result:") || line.starts_with("----") => within = false,
            _ => (),
        }
    }
    tests
}

/// The failed checks of `cargo node e2e`, each with the indented lines below it.
fn failed_checks(log: &str) -> String {
    let mut text = String::new();
    let mut within = false;
    for line in log.lines() {
        within = line.starts_with("FAILED") || (within && line.starts_with("        "));
        if within {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// The captured output of a test.
fn section(log: &str, test: &str) -> String {
    let begin = format!("---- {test} stdout ----");
    let lines = log.lines().skip_while(|line| *line != begin);
    let end = |line: &&str| !line.starts_with("---- ") && *line != "failures:";
    lines.skip(1).take_while(end).collect::<Vec<_>>().join("\n")
}

fn last_lines(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let lines = text.lines().count();
    text.lines().skip(lines.saturating_sub(most))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::job::Cost;

    const LOG: &str = "
running 3 tests
test cluster::works ... ok
test cluster::breaks ... FAILED
test late ... ignored

failures:

---- cluster::breaks stdout ----
first line
thread 'cluster::breaks' panicked at src/lib.rs:1:1:
left: 1

failures:
    cluster::breaks

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    fn job(stage: Stage) -> Job {
        let cost = Cost {
            cores: 1.0,
            memory: 1,
            seconds: 1,
        };
        Job::new(
            "crate cluster",
            stage,
            "cargo test -p crate --test cluster --",
            Path::new("/"),
            cost,
        )
    }

    fn outcome(log: &Path) -> Outcome {
        Outcome {
            passed: false,
            reason: Some("exit status: 101".to_owned()),
            started: 1.0,
            wall: 10.0,
            cpu: Some(5.0),
            log: log.to_owned(),
        }
    }

    #[test]
    fn counts_are_those_of_libtest_and_of_scripts() {
        let expected = Counts {
            passed: 1,
            failed: 1,
            ignored: 1,
        };
        assert_eq!(Counts::read(LOG), expected);
        let node = Counts {
            passed: 84,
            ..Counts::default()
        };
        assert_eq!(
            Counts::read("ok  a check (3s)\nend-to-end test, 900 s:\n84 passed, 0 failed\n"),
            node
        );
        assert_eq!(Counts::read("3 files passed the check"), Counts::default());
    }

    #[test]
    fn a_failure_names_the_test_its_output_its_command_and_its_log() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), LOG).unwrap();
        let text = failure(&job(Stage::Test), &outcome(file.path()));
        let expected = format!(
            "=== test failed: crate cluster\n--- cluster::breaks\nfirst line\nthread 'cluster::breaks' panicked at src/lib.rs:1:1:\n\
             left: 1\n\nreason: exit status: 101\nrun it alone: cargo test -p crate --test cluster -- --exact cluster::breaks\nlog: {}\n",
            file.path().display()
        );
        assert_eq!(text, expected.replace("\n\nreason", "\nreason"));
    }

    #[test]
    fn a_failed_flow_shows_its_failed_checks_and_no_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = "ok      starts (1s)\nFAILED  is removed (9s)\n        left behind: a pod\n        run it alone: cargo node e2e olm\n\n3 passed, 1 failed\n";
        fs::write(file.path(), log).unwrap();
        let text = failure(&job(Stage::Node), &outcome(file.path()));
        let expected =
            "FAILED  is removed (9s)\n        left behind: a pod\n        run it alone: cargo node e2e olm\nreason:";
        assert!(text.contains(expected) && !text.contains("starts"), "{text}");
    }

    #[test]
    fn a_failure_without_a_test_shows_the_end_of_the_log() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "a\nerror: unused\n").unwrap();
        let text = failure(&job(Stage::Verify), &outcome(file.path()));
        assert!(
            text.contains("a\nerror: unused\nreason: exit status: 101\nrun it alone: cargo test"),
            "{text}"
        );
    }

    #[test]
    fn the_table_has_a_row_for_each_job_and_sums() {
        let text = table(&[(job(Stage::Test), outcome(Path::new("x.log")))], 2.0);
        assert!(
            text.contains("| test | crate cluster | 1 s | 10 s | 5 s | 75 % |"),
            "{text}"
        );
        assert!(text.contains("| all | **sum** | | 11 s | 5 s | 77 % |"), "{text}");
    }
}
