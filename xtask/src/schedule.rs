//! Decides which job starts next. A pure function, so that the order can be tested.

use crate::job::Job;

/// Resources of the machine that jobs share.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Processor cores.
    pub cores: f64,
    /// Available memory in MiB when the checks begin.
    pub memory: u64,
}

/// Share by which the sum of the jobs' cores may exceed the cores of the machine. Jobs do not reach their averages at the
/// same time, so a sum equal to the cores would leave some of them idle.
const OVERCOMMIT: f64 = 1.5;

/// The state of a job while the checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not started yet.
    Waiting,
    /// Started.
    Running,
    /// Ended with success.
    Passed,
    /// Ended with a failure, or skipped because a job that it waits for failed.
    Failed,
}

/// The index of the job to start now: the longest of those whose prerequisites have passed and that fit in addition to
/// the running ones. A job with precedence comes first, and needs no free core. A job that exceeds the machine on its own
/// runs when nothing else does.
pub fn next(jobs: &[Job], states: &[State], machine: Machine) -> Option<usize> {
    let state_of = |name: &str| {
        let position = jobs.iter().position(|job| job.name == name);
        position.and_then(|index| states.get(index)).copied()
    };
    let running = || with_state(jobs, states, State::Running);
    let cores: f64 = running().map(|(_, job)| job.cost.cores).sum();
    let memory: u64 = running().map(|(_, job)| job.cost.memory).sum();
    let idle = running().next().is_none();
    let fits = |job: &Job| {
        let has_cores = !job.background || cores + job.cost.cores <= machine.cores * OVERCOMMIT;
        idle || (has_cores && memory + job.cost.memory <= machine.memory)
    };
    with_state(jobs, states, State::Waiting)
        .filter(|(_, job)| job.after.iter().all(|name| state_of(name) == Some(State::Passed)))
        .filter(|(_, job)| fits(job))
        .max_by_key(|(index, job)| (!job.background, job.cost.seconds, std::cmp::Reverse(*index)))
        .map(|(index, _)| index)
}

/// The index of a waiting job that can never start, because a job that it waits for failed or does not exist.
pub fn hopeless(jobs: &[Job], states: &[State]) -> Option<usize> {
    let failed = |name: &String| {
        let position = jobs.iter().position(|job| job.name == *name);
        position.is_none_or(|index| states.get(index) == Some(&State::Failed))
    };
    with_state(jobs, states, State::Waiting)
        .find(|(_, job)| job.after.iter().any(failed))
        .map(|(index, _)| index)
}

fn with_state<'a>(jobs: &'a [Job], states: &'a [State], wanted: State) -> impl Iterator<Item = (usize, &'a Job)> {
    jobs.iter()
        .enumerate()
        .filter(move |(index, _)| states.get(*index) == Some(&wanted))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::job::{Cost, Stage};

    fn job(name: &str, cores: f64, memory: u64, seconds: u64) -> Job {
        let cost = Cost { cores, memory, seconds };
        Job::new(name, Stage::Test, "true", Path::new("."), cost)
    }

    const MACHINE: Machine = Machine {
        cores: 2.0,
        memory: 4000,
    };

    /// Starts all jobs that fit, one after the other.
    fn start(jobs: &[Job], states: &mut [State]) -> Vec<String> {
        let mut started = Vec::new();
        while let Some(index) = next(jobs, states, MACHINE) {
            states[index] = State::Running;
            started.push(jobs[index].name.clone());
        }
        started
    }

    #[test]
    fn short_jobs_fill_the_gaps_of_a_long_one() {
        let jobs = [
            job("busy", 1.5, 100, 30),
            job("short", 1.0, 100, 10),
            job("waits", 0.7, 100, 300),
        ];
        let mut states = [State::Waiting; 3];
        assert_eq!(start(&jobs, &mut states), ["waits", "busy"]);
        states[0] = State::Passed;
        assert_eq!(start(&jobs, &mut states), ["short"]);
    }

    #[test]
    fn a_job_with_precedence_starts_first_and_at_once() {
        let jobs = [
            job("long", 1.5, 100, 300),
            job("longer", 1.5, 100, 400),
            job("short", 1.0, 100, 10).with_precedence(),
        ];
        let mut states = [State::Waiting; 3];
        assert_eq!(start(&jobs, &mut states), ["short", "longer"]);
        let mut states = [State::Running, State::Running, State::Waiting];
        assert_eq!(start(&jobs, &mut states), ["short"]);
    }

    #[test]
    fn memory_limits_the_number_of_jobs() {
        let jobs = [job("a", 0.1, 3000, 3), job("b", 0.1, 3000, 2), job("c", 0.1, 900, 1)];
        let mut states = [State::Waiting; 3];
        assert_eq!(start(&jobs, &mut states), ["a", "c"]);
    }

    #[test]
    fn a_job_larger_than_the_machine_runs_alone() {
        let jobs = [job("huge", 8.0, 99_000, 9), job("small", 0.1, 1, 1)];
        let mut states = [State::Waiting; 2];
        assert_eq!(start(&jobs, &mut states), ["huge"]);
        states[0] = State::Passed;
        assert_eq!(start(&jobs, &mut states), ["small"]);
    }

    #[test]
    fn a_job_waits_for_its_prerequisites_and_fails_with_them() {
        let jobs = [job("build", 1.0, 1, 1), job("test", 1.0, 1, 9).after(&["build"])];
        let mut states = [State::Waiting; 2];
        assert_eq!(start(&jobs, &mut states), ["build"]);
        assert_eq!(hopeless(&jobs, &states), None);
        states[0] = State::Failed;
        assert_eq!(next(&jobs, &states, MACHINE), None);
        assert_eq!(hopeless(&jobs, &states), Some(1));
    }

    #[test]
    fn a_job_that_waits_for_an_unknown_one_is_hopeless() {
        let jobs = [job("test", 1.0, 1, 9).after(&["missing"])];
        assert_eq!(hopeless(&jobs, &[State::Waiting]), Some(0));
    }
}
