//! `olmkit generate kustomize`

use std::process::ExitCode;

/// See `manifests`.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not there yet")
}
