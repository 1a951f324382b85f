//! `olmkit adopt`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit::object::UntrustedText;
use olmkit_scaffold::Source;
use olmkit_scaffold::adopt::Kind;

use crate::create::{scaffolded, show};

/// Add what OLM needs to an operator that exists
///
/// A crate that uses kube gets a package beside it, olm/, that renders config/ from the crate's types; a project of kubebuilder
/// or operator-sdk gets config/manifests if it has none. Both get olm.mk with targets for the bundle. Files that are there stay
/// as they are.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit adopt --domain example.com", "olmkit adopt --directory ../my-go-operator"])]
pub struct Args {
    /// Domain of image names and of the provider; projects of kubebuilder have their own
    #[arg(long, default_value = "my.domain")]
    domain: String,
    /// Where olmkit's libraries come from: registry, git:URL[#TAG] or path:DIRECTORY
    #[arg(long, env = "OLMKIT_SOURCE", default_value = "registry")]
    source: String,
    /// Folder of the project
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        let source = args.source.parse::<Source>()?;
        let adopted = olmkit_scaffold::adopt(&args.directory, &args.domain, &source)?;
        show(&adopted.report);
        match &adopted.project {
            Kind::Rust(kinds) => note!("found the kinds {}", UntrustedText::new(&kinds.join(", "))),
            Kind::Kubebuilder(layout) => note!("found the layout {}", UntrustedText::new(layout)),
        }
        note!("Next: {}", adopted.next);
        Ok(())
    })
}
