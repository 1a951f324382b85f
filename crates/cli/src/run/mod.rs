//! `olmkit run bundle` and `olmkit run bundle-upgrade`

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use olmkit::object::shell_word;
use olmkit_cluster::bundle::source;
use olmkit_cluster::v0::release::release;
use olmkit_cluster::v0::serve::place::ServeFrom;
use olmkit_cluster::v0::serve::pod::PodOptions;
use olmkit_cluster::v0::{run_bundle, upgrade};
use olmkit_cluster::{BundleFacts, Cause, Cluster, Code, Conclusion, InstallMode, Outcome, ProgressLog};

use super::cluster_args::{ClusterArgs, Output};
use super::console::{Console, print_causes, stopped};
use super::registry_flags::RegistryFlags;
use crate::runtime::block_on;

mod olm_v1;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Install a bundle through OLM
    ///
    /// Use it to test a bundle before you publish it: no catalog is needed, and with a directory no registry. Checks
    /// permissions and conflicts first, waits until the operator runs, and reports the cause and a fix if it does not.
    Bundle(BundleArgs),
    /// Upgrade an installed operator to a bundle
    ///
    /// Use it to test an upgrade before you publish the new version. The operator can be installed by `run bundle` or
    /// from a catalog.
    BundleUpgrade(UpgradeArgs),
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit run bundle quay.io/example/cache-operator-bundle:v0.1.0 -n operators", "olmkit run bundle bundle --install-mode OwnNamespace --check", "olmkit run bundle bundle --olm v1 --push-to quay.io/example -n cache"])]
struct BundleArgs {
    /// Bundle image, or a directory with manifests/ and metadata/
    #[arg(value_name = "IMAGE|DIR")]
    bundle: String,
    /// AllNamespaces, OwnNamespace, SingleNamespace=NAMESPACE or MultiNamespace=NAMESPACE,NAMESPACE
    /// [default: AllNamespaces if the operator supports it, else OwnNamespace]
    #[arg(long, value_name = "MODE", value_parser = InstallMode::parse)]
    install_mode: Option<InstallMode>,
    #[command(flatten)]
    common: Common,
    /// Delete the objects that this run created if it fails
    #[arg(long)]
    rollback_on_failure: bool,
    /// Check whether the bundle can be installed without installing it
    #[arg(long)]
    check: bool,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit run bundle-upgrade quay.io/example/cache-operator-bundle:v0.2.0 -n operators", "olmkit run bundle-upgrade bundle --olm v1 --push-to quay.io/example -n cache"])]
struct UpgradeArgs {
    /// Bundle image, or a directory with manifests/ and metadata/
    #[arg(value_name = "IMAGE|DIR")]
    bundle: String,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Install through OLM v0 or through OLM v1
    #[arg(long, value_enum, default_value = "v0")]
    olm: OlmVersion,
    /// With --olm v1: push the catalog, and the bundle if it is a directory, below this name
    #[arg(long, value_name = "REGISTRY/NAME")]
    push_to: Option<String>,
    /// With --olm v1: registry name as seen from inside the cluster [default: --push-to]
    #[arg(long, value_name = "REGISTRY/NAME", requires = "push_to")]
    pull_from: Option<String>,
    /// Serve the catalog from this process at this host's IP address [default: detected]. Deletes the CatalogSource and
    /// Subscription when done. The operator keeps running
    #[arg(long, value_name = "ADDRESS[:PORT]", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "helper_image")]
    serve_from_host: Option<String>,
    /// Serve the catalog from a pod with this image, which must contain /bin/opm, such as the olmkit or opm image [default: the
    /// image that OLM unpacks bundles with]
    #[arg(long, alias = "index-image", value_name = "IMAGE", env = "OLMKIT_HELPER_IMAGE")]
    helper_image: Option<String>,
    /// Pull policy for the pod's image
    #[arg(long, value_enum, default_value = "if-not-present", ignore_case = true)]
    image_pull_policy: PullPolicy,
    /// ServiceAccount of the catalog's pod
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// Secret of type dockerconfigjson for pulling the bundle and the helper image
    #[arg(long, value_name = "NAME")]
    pull_secret_name: Option<String>,
    #[command(flatten)]
    registry: RegistryFlags,
    /// Ignored (operator-sdk compatibility): containers are always restricted
    #[arg(long, hide = true)]
    security_context_config: Option<String>,
    /// Ignored (operator-sdk compatibility): no pod pulls the bundle. See --ca-file
    #[arg(long = "ca-secret-name", hide = true)]
    _ca_secret_name: Option<String>,
    /// Ignored (operator-sdk compatibility): no container unpacks a large bundle
    #[arg(long = "decompression-image", hide = true)]
    _decompression_image: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum PullPolicy {
    #[value(alias = "Always")]
    Always,
    #[value(alias = "IfNotPresent", alias = "ifnotpresent")]
    IfNotPresent,
    #[value(alias = "Never")]
    Never,
}

/// `--olm`
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OlmVersion {
    /// Subscription, InstallPlan and ClusterServiceVersion.
    V0,
    /// ClusterCatalog and ClusterExtension.
    V1,
}

impl Common {
    fn place(&self) -> ServeFrom {
        match (&self.helper_image, &self.serve_from_host) {
            (Some(image), None) => ServeFrom::Pod(PodOptions {
                image: image.clone(),
                pull_policy: match self.image_pull_policy {
                    PullPolicy::Always => "Always",
                    PullPolicy::IfNotPresent => "IfNotPresent",
                    PullPolicy::Never => "Never",
                }
                .to_owned(),
                service_account: self.service_account.clone(),
                pull_secret: self.pull_secret_name.clone(),
            }),
            (_, Some(address)) => ServeFrom::Host(Some(address.clone())),
            (None, None) => ServeFrom::Auto,
        }
    }

    fn options(&self) -> run_bundle::Options {
        run_bundle::Options {
            install_mode: None,
            place: self.place(),
            pull_secret: self.pull_secret_name.clone(),
            timeout: self.cluster.timeout,
            rollback: false,
            check_only: false,
        }
    }

    /// Flags that only OLM v1 has.
    fn check_v0(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.push_to.is_none(),
            "--push-to: nothing is pushed for OLM v0; pass --olm v1 as well, or omit it"
        );
        Ok(())
    }

    /// Reads the bundle and connects.
    async fn begin(&self, bundle: &str) -> anyhow::Result<Result<(BundleFacts, Cluster), olmkit_cluster::Error>> {
        let registry = self.registry.client()?;
        let begun = async { Ok((source::load(bundle, &registry).await?, self.cluster.connect().await?)) };
        Ok(begun.await)
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    block_on(async {
        match &args.command {
            Command::Bundle(args) if args.common.olm == OlmVersion::V1 => {
                let request = olm_v1::Request {
                    bundle: &args.bundle,
                    common: &args.common,
                    install_mode: args.install_mode.clone(),
                    rollback: args.rollback_on_failure,
                    check_only: args.check,
                    is_upgrade: false,
                };
                olm_v1::run(&request).await
            }
            Command::BundleUpgrade(args) if args.common.olm == OlmVersion::V1 => {
                let request = olm_v1::Request {
                    bundle: &args.bundle,
                    common: &args.common,
                    install_mode: None,
                    rollback: false,
                    check_only: false,
                    is_upgrade: true,
                };
                olm_v1::run(&request).await
            }
            Command::Bundle(args) => {
                args.common.check_v0()?;
                let (bundle, cluster) = match args.common.begin(&args.bundle).await? {
                    Ok(begun) => begun,
                    Err(error) => return stopped(error, args.common.output),
                };
                let options = run_bundle::Options {
                    install_mode: args.install_mode.clone(),
                    rollback: args.rollback_on_failure,
                    check_only: args.check,
                    ..args.common.options()
                };
                let console = Console::new();
                let flow = run_bundle::run(&cluster, &bundle, &options, &console);
                finish(&cluster, &bundle, flow, &console, args.common.output).await
            }
            Command::BundleUpgrade(args) => {
                args.common.check_v0()?;
                let (bundle, cluster) = match args.common.begin(&args.bundle).await? {
                    Ok(begun) => begun,
                    Err(error) => return stopped(error, args.common.output),
                };
                let options = args.common.options();
                let console = Console::new();
                let flow = upgrade::run(&cluster, &bundle, &options, &console);
                finish(&cluster, &bundle, flow, &console, args.common.output).await
            }
        }
    })?
}

/// Runs a flow to its end or until the user interrupts it, and prints how it ended.
async fn finish(
    cluster: &Cluster,
    bundle: &BundleFacts,
    flow: impl Future<Output = Result<Outcome, olmkit_cluster::Error>>,
    console: &Console,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let ended = tokio::select! {
        ended = flow => Some(ended),
        () = super::signals::interrupted() => None,
    };
    if ended.is_some() {
        console.finish();
    }
    match ended {
        Some(Ok(outcome)) => print(&outcome, output),
        Some(Err(error)) => {
            // The API server answers, but rejects the request: a catalog served from here must not remain as a dead
            // one. The reason has been reported already, so another rejection adds nothing.
            if error.cause().is_some_and(|cause| cause.code != Code::ApiUnreachable) {
                let _ = release(cluster, bundle, &mut ProgressLog::start(console)).await;
            }
            stopped(error, output)
        }
        None => {
            // A catalog served from here is dead once the process ends. `cleanup` or a rerun handles the rest. A user
            // who interrupts again does not want to wait for OLM either.
            let mut progress = ProgressLog::start(console);
            tokio::select! {
                released = release(cluster, bundle, &mut progress) => released?,
                () = crate::signals::interrupted() => {}
            }
            console.finish();
            let cause = Cause::passing(
                Code::Interrupted,
                "interrupted; the objects created so far are kept",
                format!(
                    "run the same command again to continue, or remove it: olmkit cleanup {} -n {}",
                    shell_word(&bundle.package),
                    cluster.namespace
                ),
            );
            if output == Output::Json {
                crate::terminal::json(
                    &serde_json::json!({"result": "interrupted", "package": bundle.package, "clusterServiceVersion": bundle.csv_name(), "namespace": cluster.namespace, "causes": [cause]}),
                )?;
            } else {
                print_causes(&[cause]);
            }
            Ok(ExitCode::from(130))
        }
    }
}

pub fn print(outcome: &Outcome, output: Output) -> anyhow::Result<ExitCode> {
    match output {
        Output::Json => crate::terminal::json(outcome)?,
        Output::Text => {
            print_causes(&outcome.causes);
            println!("{}", sentence(outcome));
        }
    }
    Ok(if outcome.is_fine() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn sentence(outcome: &Outcome) -> String {
    let Outcome {
        csv,
        namespace,
        seconds,
        package,
        ..
    } = outcome;
    match outcome.result {
        Conclusion::Succeeded => format!("{csv} is installed in namespace {namespace} ({seconds:.1} s)"),
        Conclusion::AlreadyInstalled => format!("{csv} is already installed in namespace {namespace}"),
        Conclusion::Checked => format!("{csv} can be installed in namespace {namespace}"),
        Conclusion::Rejected => format!("{csv} was not installed: nothing was changed"),
        Conclusion::Failed => format!(
            "{csv} is not installed; fix the cause and run the same command again, or remove it: olmkit cleanup {} -n {namespace}",
            shell_word(package)
        ),
    }
}
