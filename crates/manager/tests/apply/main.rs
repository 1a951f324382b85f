//! Applies objects on a real API server: the cases of `apply/cases`, or of the directory that the variable APPLY_CASES names.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod cases;
mod check;
mod random;

use std::path::PathBuf;

use cases::Case;
use check::Bench;

/// Each case runs twice: in one process, and with a new process for its last reconcile, which remembers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn all_cases_are_right() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apply/cases");
    let directory = std::env::var_os("APPLY_CASES").map_or_else(|| PathBuf::from(own), PathBuf::from);
    let Some(cases) = cases::read(&directory) else {
        panic!(
            "APPLY_CASES names {}, which is not a directory with cases",
            directory.display()
        );
    };
    let bench = Bench::start().await;
    let mut wrong = Vec::new();
    let only = std::env::var("APPLY_CASE").unwrap_or_default();
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.name.contains(&only)).collect();
    for case in &cases {
        for restarted in [false, true] {
            if let Some(reason) = case.skip_restarted.as_ref().filter(|_| restarted) {
                println!("{} (restarted): skipped, {reason}", case.name);
                continue;
            }
            if let Err(error) = bench.check(case, restarted).await {
                let variant = if restarted { "restarted" } else { "running" };
                wrong.push(format!("{} ({variant}): {error}", case.name));
            }
        }
    }
    println!(
        "{} cases from {}, {} results are wrong",
        cases.len(),
        directory.display(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// `APPLY_RANDOM=SEED:COUNT` names other cases.
#[tokio::test(flavor = "multi_thread")]
async fn random_changes_are_judged_as_by_the_api_server() {
    let asked = std::env::var("APPLY_RANDOM").unwrap_or_else(|_| "1:150".to_owned());
    let (seed, count) = asked.split_once(':').expect("APPLY_RANDOM is SEED:COUNT");
    let bench = Bench::start().await;
    let (figures, wrong) = random::run(&bench, seed.parse().unwrap(), count.parse().unwrap()).await;
    println!("seed {seed}: {figures:?}, {} are wrong", wrong.len());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(figures.changed > 0 && figures.unchanged > 0);
}
