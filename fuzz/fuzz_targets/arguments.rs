//! Any words as a command line of olmkit: parsing ends without a crash, in help, an error or a command that is not run.
#![no_main]

use clap::Parser as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let words = std::iter::once("olmkit").chain(text.split(['\n', '\0']));
    if let Err(error) = olmkit_cli::Cli::try_parse_from(words) {
        let _ = error.render().to_string();
    }
    for word in text.split('\n') {
        let _ = olmkit::limits::Chosen::parse([word]);
    }
});
