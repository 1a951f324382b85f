//! Any text as a catalog: reading and checking it ends without a crash, and the quick reader differs from the full one
//! in nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use olmkit::catalog::text::{Html, Numbers, Value, block};
use olmkit::catalog::{Catalog, load, validate};
use olmkit::yaml;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.ends_with('\n')
        && !text.contains('\r')
        && let Some(quick @ (Value::Mapping(_) | Value::Sequence(_))) = block::read(text)
    {
        // A last line without an end is for the full reader.
        let full = yaml::parse(format!("{text}#").as_bytes()).and_then(|node| node.to_json());
        let full = full.unwrap_or_else(|error| panic!("{error}: {text:?} was read as {quick:?}"));
        let json = |value: Value<'_>| value.to_json(Numbers::Keep, Html::Plain);
        assert_eq!(json(quick), json(Value::from(full)), "{text:?}");
    }
    if let Ok(blobs) = load::text(text) {
        let catalog: Catalog = blobs.into_iter().collect();
        let _ = validate::catalog_verdict(&catalog);
    }
});
