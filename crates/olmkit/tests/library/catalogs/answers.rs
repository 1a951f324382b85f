//! opm's output for catalogs: validate, list, graph.

use olmkit::catalog::{listing, load, mermaid, selection};
use serde_json::Value;

use super::{Tally, corpus, lines_sorted, names};

#[test]
fn catalogs_get_the_verdicts_of_opm() {
    let Some(corpus) = corpus("") else { return };
    let mut tally = Tally::default();
    for name in names(&corpus.join("catalogs")) {
        let verdict = olmkit::catalog::validate::directory(&corpus.join("catalogs").join(&name));
        tally.compare(&name, &verdict.opm_text.unwrap_or_default(), "");
    }
    tally.finish("catalogs, validate");
    let mut tally = Tally::default();
    for name in names(&corpus.join("catalogs-broken")) {
        let record = corpus.join("expected/catalogs-broken").join(format!("{name}.json"));
        let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
        let verdict = olmkit::catalog::validate::directory(&corpus.join("catalogs-broken").join(&name));
        let ours = sorted_lines(&verdict.opm_text.unwrap_or_default());
        tally.compare(&name, &ours, &sorted_lines(record["stderr"].as_str().unwrap()));
    }
    tally.finish("broken catalogs, validate");
}

/// opm prints the siblings of a tree in any order.
fn sorted_lines(text: &str) -> String {
    let strip = |line: &str| line.trim_start_matches([' ', '│', '├', '└', '─']).to_owned();
    let mut lines: Vec<String> = text.lines().map(strip).collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn lists_and_graphs_are_those_of_opm() {
    let Some(corpus) = corpus("") else { return };
    let mut tally = Tally::default();
    for name in names(&corpus.join("catalogs")) {
        let catalog = load::directory(&corpus.join("catalogs").join(&name)).unwrap();
        let draw = |v0_semantics| {
            let options = selection::Selection {
                v0_semantics,
                ..selection::Selection::default()
            };
            mermaid::draw(&catalog, &options).unwrap().text
        };
        for (file, ours) in [
            ("list-packages.txt", listing::packages(&catalog).to_string()),
            ("list-channels.txt", listing::channels(&catalog, None).to_string()),
            ("list-bundles.txt", listing::bundles(&catalog, None).to_string()),
            ("graph.mermaid", draw(false)),
            ("graph-v0.mermaid", draw(true)),
        ] {
            let Ok(theirs) = std::fs::read_to_string(corpus.join("expected/catalogs").join(&name).join(file)) else {
                continue;
            };
            let label = format!("{name} {file}");
            if file.ends_with(".mermaid") {
                // The numbers in `linkStyle` count edges, so the order of the lines matters.
                tally.compare(&label, &ours, &theirs);
            } else {
                // Entries of equal version come in any order.
                tally.compare(&label, &lines_sorted(&ours), &lines_sorted(&theirs));
            }
        }
    }
    tally.finish("list and graph");
}
