//! Any text as a catalog that is drawn and listed: every picture ends, has a limited width, and contains no control
//! characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::catalog::{Catalog, difference, listing, load, mermaid, mirror, path, picture};
use olmkit::catalog::selection::Selection;
use olmkit::object::UntrustedText;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(blobs) = load::text(text) else { return };
    let catalog: Catalog = blobs.into_iter().collect();
    let selection = Selection {
        v0_semantics: true,
        ..Selection::default()
    };
    let mut shown = vec![
        listing::packages(&catalog).to_string(),
        listing::channels(&catalog, None).to_string(),
        listing::bundles(&catalog, None).to_string(),
    ];
    shown.extend(picture::dot(&catalog, &selection));
    if let Ok(svg) = picture::svg(&catalog, &selection) {
        let width = svg.split_once("width=\"").and_then(|(_, rest)| rest.split('"').next());
        assert!(width.and_then(|width| width.parse::<u32>().ok()).is_some_and(|width| width <= 4000));
        shown.push(svg);
    }
    shown.extend(mermaid::draw(&catalog, &selection).map(|drawing| drawing.text));
    let changes = difference::between(&Catalog::default(), &catalog);
    shown.extend(changes.iter().map(ToString::to_string));
    for text in shown {
        // DOT's quotes are those of Go, which keep some characters that only reorder.
        let bad = |c: char| c.is_control() && UntrustedText::is_unsafe(c) && c != '\n';
        assert!(!text.contains(bad), "{text:?}");
    }
    let _ = mirror::images(&catalog, None);
    for channel in &catalog.channels {
        for entry in channel.entries() {
            let question = path::Question {
                package: &channel.package,
                channel: Some(&channel.name),
                from: &entry.name,
                to: None,
            };
            let _ = path::find(&catalog, question);
        }
    }
});
