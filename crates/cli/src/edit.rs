//! `olmkit edit`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit_scaffold::{Edit, edit_settings};

use crate::create::{scaffolded, show};

/// Change the settings of a project
///
/// Does not move the files of existing kinds.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit edit --multigroup"])]
pub struct Args {
    /// Use one directory per API group for new kinds
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(required_unless_present = "namespaced")]
    multigroup: Option<bool>,
    /// Watch only the namespace that the operator runs in
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    namespaced: Option<bool>,
    /// Project directory
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        let changes = Edit {
            multigroup: args.multigroup,
            namespaced: args.namespaced,
        };
        show(&edit_settings(&args.directory, changes)?);
        Ok(())
    })
}
