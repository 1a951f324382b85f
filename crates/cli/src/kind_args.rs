//! The flags that all commands about a kind of a project share.

use std::path::PathBuf;

// No doc comment: the commands that flatten this would show it as their own help.
#[derive(clap::Args)]
pub struct KindArgs {
    /// API group, without the project's domain
    #[arg(long, default_value = "")]
    pub group: String,
    /// Version, such as v1alpha1
    #[arg(long)]
    pub version: String,
    /// Kind, in CamelCase
    #[arg(long)]
    pub kind: String,
    /// Project directory
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    pub directory: PathBuf,
}
