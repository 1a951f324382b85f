//! `olmkit bundle rbac`

use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::olmv1::{Installer, Release, Rights};
use olmkit::rbac::Account;

use super::render;

/// Print the minimal RBAC for installing a bundle with OLM v1
///
/// OLM v1 up to 1.10 installs a bundle with the service account in the ClusterExtension's spec.serviceAccount. The account
/// needs permissions to manage each object that `bundle render --olmv1` prints, to grant the permissions in them, and to set
/// the ClusterExtension's finalizers.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit bundle rbac --for-installer bundle --install-namespace cache | kubectl apply -f -", "olmkit bundle rbac --for-installer bundle -n cache --extension cache --account installer"])]
pub struct Args {
    /// Permissions for the service account in the ClusterExtension's `spec.serviceAccount`.
    #[arg(long, required = true)]
    for_installer: bool,
    /// Target OLM v1 release. Releases after 1.10 do not use a service account.
    #[arg(long, value_name = "RELEASE", default_value = "1.10", require_equals = true)]
    olmv1: Release,
    #[command(flatten)]
    how: render::How,
    /// Name of the ClusterExtension [default: the package].
    #[arg(long, value_name = "NAME")]
    extension: Option<String>,
    /// Name of the ServiceAccount [default: EXTENSION-installer].
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.olmv1.needs_installer(),
        "OLM v1 {} installs with operator-controller's permissions and ignores spec.serviceAccount; only releases up to 1.10 need a service account",
        args.olmv1
    );
    let (bundle, objects) = args.how.render()?;
    let extension = args.extension.as_deref().unwrap_or(&bundle.package);
    anyhow::ensure!(
        !extension.is_empty(),
        "the bundle names no package; pass the name of the ClusterExtension with --extension"
    );
    let account = args.account.clone().unwrap_or_else(|| format!("{extension}-installer"));
    let installer = Installer {
        account: Account {
            name: &account,
            namespace: &args.how.install_namespace,
        },
        extension,
    };
    let rights = Rights::from_objects(&objects, extension).with_context(|| args.how.bundle.clone())?;
    render::print(&rights.objects(&installer))
}
