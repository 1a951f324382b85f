//! Runs `olmkit repo` on any clone of an operator repository, with links, modes, names, nested repositories and git settings. No
//! program of the clone's author may start, and nothing may be written outside the clone. `-close_fd_mask=3` discards the output.
#![no_main]

use std::fs;

use clap::Parser as _;
use libfuzzer_sys::fuzz_target;

// The crate `test-support` has dependencies that no fuzz target needs.
#[allow(dead_code)]
#[path = "../../dev/test-support/src/hostile_repository.rs"]
mod hostile_repository;
use hostile_repository::HostileRepository;

fuzz_target!(|data: &[u8]| {
    let hostile = HostileRepository::new(data);
    let parent = hostile.root().parent().expect("it has one").to_owned();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&parent).expect("it is there").map(|entry| entry.expect("it is there").file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for arguments in hostile.commands() {
        let words = std::iter::once("olmkit").chain(arguments.iter().map(String::as_str));
        let cli = olmkit_cli::Cli::try_parse_from(words).expect("the command is sound");
        if let Err(error) = cli.run(false) {
            let _ = format!("{error:#}");
        }
        assert_eq!(hostile.ran(), "", "{arguments:?} started a program");
        assert_eq!(names(), before, "{arguments:?} wrote outside the repository");
    }
});
