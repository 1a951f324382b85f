//! Compares the statements of olmkit's rules about the API server and OLM with the behavior of real ones, over
//! directories of bundles.
#![allow(clippy::indexing_slicing)] // of JSON values, where an absent entry is null

mod answer;
mod bundles;
mod made_up;
mod objects;
mod olm;
mod server;
mod tally;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use kube_testbed::{ControlPlane, Options};

use bundles::{Definition, Subject};
use server::Server;
use tally::Tally;

/// Ask a real API server, or OLM, about bundles, and count how often our rules are right.
#[derive(Debug, Parser)]
struct Arguments {
    /// Directories that are searched for bundles.
    #[arg(required_unless_present = "record")]
    folders: Vec<PathBuf>,
    /// Only the bundle with the highest version in each directory with bundles.
    #[arg(long)]
    newest: bool,
    /// Only this number of bundles, randomly selected.
    #[arg(long)]
    sample: Option<usize>,
    /// The start of the chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a line of JSON for each answer of the server that contradicts a rule.
    #[arg(long)]
    facts: Option<PathBuf>,
    /// Install the bundles with OLM and check the result, instead of sending their objects to the API server.
    #[arg(long)]
    olm: bool,
    /// With `--olm`: for all namespaces if the operator supports that, otherwise for one.
    #[arg(long, requires = "olm")]
    everywhere: bool,
    /// Install the synthetic bundles of a file instead, and record the results in it.
    #[arg(long, requires = "olm", conflicts_with = "folders", value_name = "FILE")]
    record: Option<PathBuf>,
    /// CRDs that exist at the same time.
    #[arg(long, default_value_t = 120)]
    together: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let made_up = arguments.record.as_deref().map(made_up::MadeUp::write).transpose()?;
    let folders = match &made_up {
        Some(made_up) => vec![made_up.folder()],
        None => arguments.folders.clone(),
    };
    let paths = bundles::find(&folders, arguments.newest, arguments.sample, arguments.seed)?;
    let subjects = bundles::read(&paths)?;
    eprintln!("{} bundles", subjects.len());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut tally = Tally::default();
    for subject in subjects.iter().filter(|subject| subject.passed) {
        tally.findings(&subject.findings);
    }
    runtime.block_on(async {
        match arguments.olm {
            true => olm::run(&subjects, arguments.everywhere, &mut tally).await,
            false => ask_server(&subjects, arguments.together, &mut tally).await,
        }
    })?;
    print!("{tally}");
    if let Some(made_up) = made_up {
        made_up.record(&tally)?;
    }
    if let Some(path) = &arguments.facts {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path).context("cannot write the facts")?);
        for fact in tally.facts() {
            writeln!(file, "{fact}")?;
        }
        file.flush()?;
    }
    Ok(if tally.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn ask_server(subjects: &[Subject], together: usize, tally: &mut Tally) -> anyhow::Result<()> {
    // Compiling the schemas of hundreds of CRDs takes a while on a small machine.
    let plane = ControlPlane::start(Options::default()).await?;
    let server = Server::new(plane.client().await?);
    objects::definitions(&server, subjects, tally).await?;
    eprintln!("{} CRDs asked", tally.definitions);
    objects::deployments(&server, subjects, tally).await?;
    eprintln!("{} Deployments asked", tally.deployments);
    let mut waiting: Vec<&Subject> = subjects.iter().filter(|subject| !subject.examples.is_empty()).collect();
    while !waiting.is_empty() {
        let (wave, later) = next_wave(waiting, together);
        objects::examples(&server, &wave, tally).await?;
        waiting = later;
        eprintln!("{} examples asked, {} bundles left", tally.examples, waiting.len());
    }
    Ok(())
}

/// The largest set of bundles without a common API group, in which names could conflict.
fn next_wave(waiting: Vec<&Subject>, together: usize) -> (Vec<&Subject>, Vec<&Subject>) {
    let (mut groups, mut count) = (BTreeSet::new(), 0);
    waiting.into_iter().partition(|subject| {
        let own = subject.used_definitions().count();
        let of_it: BTreeSet<&str> = subject.used_definitions().map(Definition::group).collect();
        let fits = groups.is_disjoint(&of_it) && (count == 0 || count + own <= together);
        if fits {
            groups.extend(of_it);
            count += own;
        }
        fits
    })
}
