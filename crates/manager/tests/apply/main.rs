//! Applies objects on a real API server: the cases of `apply/cases`, or of the directory that the variable APPLY_CASES names.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod cases;
mod check;

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
