//! `olmkit adopt`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit::object::UntrustedText;
use olmkit_scaffold::Source;
use olmkit_scaffold::adopt::Kind;

use crate::create::{scaffolded, show};

/// Add OLM packaging to an existing operator
///
/// A crate that uses kube gets a package olm/ that renders config/ from the crate's types. A kubebuilder or operator-sdk
/// project gets config/manifests if it has none. Both get olm.mk with targets for the bundle. Existing files are not changed.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit adopt --domain example.com", "olmkit adopt --directory ../my-go-operator"])]
pub struct Args {
    /// Domain for image names and the provider. Ignored in kubebuilder projects, which have a domain
    #[arg(long, default_value = "my.domain")]
    domain: String,
    /// Source of olmkit's libraries: registry, git:URL[#TAG] or path:DIRECTORY
    #[arg(long, env = "OLMKIT_SOURCE", default_value = "registry")]
    source: String,
    /// Project directory
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
        crate::init::note_unreleased(&args.source);
        note!("Next: {}", adopted.next);
        Ok(())
    })
}
