//! The programs: `olmkit`, and what runs in pods under the names that OLM starts.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use super::{Cli, health_probe, in_pod, opm};

/// `olmkit`, which under other names is each of the programs in pods as well: `olmkit cpb …` is the same as `cpb …`.
pub fn olmkit() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    end(run_in_pod(&arguments).unwrap_or_else(|| Cli::parse_from(arguments).run()))
}

/// The programs in pods without the rest, which no pod needs: a fraction of the size.
pub fn helper() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    end(run_in_pod(&arguments).unwrap_or_else(|| {
        eprintln!("Error: the helper goes by its name: call it as opm, cp, cpb, copy-content or grpc_health_probe");
        Ok(ExitCode::from(2))
    }))
}

/// One binary, several programs: the name it is called by decides, or its first argument. `None`: neither is known.
fn run_in_pod(arguments: &[OsString]) -> Option<anyhow::Result<ExitCode>> {
    for skipped in 0..2 {
        let name = arguments
            .get(skipped)
            .map(Path::new)
            .and_then(Path::file_name)
            .unwrap_or_default();
        let rest = || arguments.iter().skip(skipped).cloned().collect();
        if name == "opm" {
            return Some(opm::Opm::from_arguments(rest()).run());
        }
        // The Makefiles of operator-sdk say `$(OPM) index add`; there OPM may be olmkit under its own name.
        if skipped == 1 && name == "index" {
            return Some(opm::Opm::from_arguments(arguments.to_vec()).run());
        }
        if name == "grpc_health_probe" {
            return Some(health_probe::run(rest()));
        }
        if let Some(result) = in_pod::run(&name.to_string_lossy(), rest()) {
            return Some(result);
        }
    }
    None
}

fn end(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("Error: {}", message(&error));
        ExitCode::FAILURE
    })
}

/// An error and its causes on one line. Most messages hold the words of their cause already; those are not repeated.
pub(super) fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::message;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("no such file")
            .context("read a: no such file")
            .context("b cannot be served");
        assert_eq!(message(&error), "b cannot be served: read a: no such file");
    }
}
