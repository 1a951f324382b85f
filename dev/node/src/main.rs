//! The demo, the end-to-end test and the drills on a real Kubernetes node: `cargo node --help`.

mod bench;
mod cache;
mod checks;
mod client;
mod command;
mod demo;
mod drills;
mod e2e;
mod measure;
mod package;
mod run;
mod world;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::run::Run;

/// Run the demo, the end-to-end test or the drills on a real Kubernetes node.
///
/// The programs that they use are built first, unless OLMKIT and OPERATOR name static ones.
#[derive(Parser)]
#[command(name = "cargo node", bin_name = "cargo node")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the operator with OLM, use it and upgrade it (CLUSTER=current REGISTRY=host/path: not on the local node)
    Demo,
    /// Remove everything that the demo created
    DemoDown,
    /// Run the end-to-end test. KEEP=1 leaves the cluster up
    E2e {
        /// Run only these flows, in this order. All flows run in random order
        flows: Vec<String>,
        /// Number that decides the order. 0 is the order of the source
        #[arg(long, env = "SEED")]
        seed: Option<u64>,
    },
    /// Cause failures, check the causes that olmkit reports, and apply its fixes. KEEP=1 leaves the cluster up
    Drills {
        /// Run only these: failures, catalogs, network (a network that enforces policies), or upstream, which prints the output of
        /// operator-sdk for the same failures
        drills: Vec<String>,
    },
    /// Compare the times of installation, upgrade and removal with operator-sdk. KEEP=1 leaves the cluster up
    Bench {
        /// Number of measurements
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// Measure the keys that memcached clients lose when servers restart or change. KEEP=1 leaves the cluster up
    Measure,
    /// Store and read keys (other commands run this in the cluster's network)
    #[command(hide = true)]
    Client(client::Settings),
}

fn main() -> ExitCode {
    run(&Cli::parse().command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(task: &Task) -> anyhow::Result<ExitCode> {
    if let Task::Client(settings) = task {
        client::client(settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = Run::new()?;
    let passed = match task {
        Task::Demo => demo::demo(&run).map(|()| true)?,
        Task::DemoDown => demo::down(&run).map(|()| true)?,
        Task::E2e { flows, seed } => e2e::e2e(&run, flows, *seed)?,
        Task::Drills { drills } => drills::drills(&run, drills)?,
        Task::Bench { rounds } => bench::bench(&run, *rounds).map(|()| true)?,
        Task::Measure => measure::measure(&run).map(|()| true)?,
        Task::Client(_) => true,
    };
    Ok(ExitCode::from(u8::from(!passed)))
}
