//! `grpc_health_probe`: the program that catalog pods are probed with, with its flags and exit codes.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use olmkit_serve::probe;

use super::cluster_args::duration;
use crate::runtime::block_on;

/// Checks if a gRPC server serves.
#[derive(clap::Parser)]
#[command(name = "grpc_health_probe", version)]
struct Probe {
    /// Address of the server, host:port.
    #[arg(long)]
    addr: String,
    /// Service to query. Empty for the server as a whole.
    #[arg(long, default_value = "")]
    service: String,
    /// Time to connect.
    #[arg(long, default_value = "1s", value_parser = duration)]
    connect_timeout: Duration,
    /// Time to answer.
    #[arg(long, default_value = "1s", value_parser = duration)]
    rpc_timeout: Duration,
}

/// Runs the probe. Its flags have one dash, or two.
pub fn run(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let arguments = arguments.into_iter().map(|argument| match argument.to_str() {
        Some(text) if text.starts_with('-') && !text.starts_with("--") && text.len() > 2 => format!("-{text}").into(),
        _ => argument,
    });
    let probe = match Probe::try_parse_from(arguments) {
        Ok(probe) => probe,
        Err(error) => {
            error.print()?;
            // A usage error has exit code 1 here; 2 means that the server cannot be reached.
            return Ok(if error.use_stderr() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            });
        }
    };
    let check = probe::check(&probe.addr, &probe.service, probe.connect_timeout, probe.rpc_timeout);
    Ok(match block_on(check)? {
        Ok(()) => {
            eprintln!("status: SERVING");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    })
}
