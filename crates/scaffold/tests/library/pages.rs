//! Excerpts of a scaffolded project in the documentation.

use olmkit_scaffold::{Init, create_api};

use super::{api, files, options, started};

/// Sections 2 to 5 of the page on packaging quote the files of section 1, except for whitespace.
#[test]
fn the_page_on_packaging_quotes_what_is_scaffolded() {
    let folder = started(&Init {
        name: Some("backup-operator".into()),
        ..options()
    });
    create_api(folder.path(), &api("backup", "v1", "Backup")).unwrap();
    let dense = |text: &str| -> String { text.split_whitespace().collect() };
    let written: String = files(&folder.path().join("src"))
        .values()
        .map(|content| dense(&String::from_utf8_lossy(content)))
        .collect();
    let page = include_str!("../../../../docs/guides/rust-operators.md");
    let (_, sections) = page.split_once("\n## 2. ").unwrap();
    let (sections, _) = sections.split_once("\n## 6. ").unwrap();
    let quotes: Vec<&str> = sections
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(quotes.len() >= 5);
    for quote in quotes {
        assert!(written.contains(&dense(quote)), "{quote}");
    }
}
