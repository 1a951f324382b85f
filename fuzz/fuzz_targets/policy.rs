//! Any text as settings, as a baseline, and as a file whose comments set findings aside: reading and applying them end.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use olmkit::diagnostics::{Finding, Report};
use olmkit::policy::Policy;
use olmkit::policy::baseline::Baseline;
use olmkit::policy::config::{Config, FILE};
use olmkit::rules;
use olmkit::yaml::Position;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (settings, other) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, data),
    };
    let [file, baseline, manifest] = [FILE, "baseline.json", "a.yaml"].map(|name| folder.path().join(name));
    for (path, bytes) in [(&file, settings), (&baseline, other), (&manifest, other)] {
        fs::write(path, bytes).expect("a file");
    }
    let lines = u32::try_from(other.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX);
    let report: Report = rules::all()
        .iter()
        .zip((1..=lines.max(1)).cycle())
        .map(|(rule, line)| {
            Finding::from_rule(rule, "x")
                .file(&manifest)
                .at(Position { line, column: 1 })
        })
        .collect();
    let count = report.findings.len();
    let mut builder = Policy::builder(rules::all());
    if let Ok(config) = Config::read(&file) {
        let _ = config.baseline_file(&file);
        builder = match config.apply(&file, builder, true) {
            Ok(builder) => builder,
            Err(error) => {
                let _ = error.to_string();
                return;
            }
        };
    }
    if let Ok(known) = Baseline::read(&baseline) {
        let _ = known.len();
        builder = builder.baseline(known);
    }
    let judged = builder.build().apply(report);
    assert!(judged.findings.len() + judged.suppressed.len() <= count);
});
