//! `olmkit init`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit_scaffold::{Init, License, Source};

use crate::create::{scaffolded, show};

/// Start the project of an operator in Rust
///
/// Writes a project that builds, tests and packages itself, without asking, compiling or using the network. The folder must
/// be empty but for a git repository. `olmkit create api` adds a kind.
#[derive(clap::Args)]
#[command(after_help = examples![
    "olmkit init --domain example.com",
    "olmkit init --domain example.com --project-name cache-operator --directory cache-operator"
])]
pub struct Args {
    /// Common end of the API groups
    #[arg(long, default_value = "my.domain")]
    domain: String,
    /// Name of the project [default: the name of the folder]
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,
    /// License of the project
    #[arg(long, value_enum, default_value = "apache2")]
    license: Licenses,
    /// Watch only the namespace that the operator runs in
    #[arg(long)]
    namespaced: bool,
    /// Give each API group folders of its own
    #[arg(long)]
    multigroup: bool,
    /// Where olmkit's libraries come from: registry, git:URL[#TAG] or path:DIRECTORY
    #[arg(long, env = "OLMKIT_SOURCE", default_value = "registry")]
    source: String,
    /// Folder of the project
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Licenses {
    /// Apache License, version 2.0
    Apache2,
    /// Left to you
    None,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        let report = olmkit_scaffold::init(
            &args.directory,
            &Init {
                domain: args.domain.clone(),
                name: args.project_name.clone(),
                license: match args.license {
                    Licenses::Apache2 => License::Apache2,
                    Licenses::None => License::None,
                },
                namespaced: args.namespaced,
                multigroup: args.multigroup,
                source: args.source.parse::<Source>()?,
            },
        )?;
        show(&report);
        note!("Next: olmkit create api --group GROUP --version v1alpha1 --kind KIND");
        Ok(())
    })
}
