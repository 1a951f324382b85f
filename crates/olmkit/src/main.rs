//! The `olmkit` command.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

mod cli;

fn main() -> ExitCode {
    match run(std::env::args_os().collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// One binary, several programs: the name it is called by decides. `olmkit cpb …` is the same as `cpb …`.
fn run(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    for skipped in 0..2 {
        let name = arguments
            .get(skipped)
            .map(Path::new)
            .and_then(Path::file_name)
            .unwrap_or_default();
        let rest = || arguments.iter().skip(skipped).cloned().collect();
        if name == "opm" {
            return cli::opm::Opm::parse_from::<Vec<OsString>, _>(rest()).run();
        }
        if name == "grpc_health_probe" {
            return cli::health_probe::run(rest());
        }
        if let Some(result) = cli::in_pod::run(&name.to_string_lossy(), rest()) {
            return result;
        }
    }
    cli::Cli::parse_from(arguments).run()
}
