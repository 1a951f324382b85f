//! `olmkit olm install`, `status`, `uninstall`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;
use olmkit_cluster::olm::{self, InstallOptions, Status, UninstallOptions, objects::Settings, release, source};

use super::cleanup::print_released;
use super::cluster_args::{ClusterArgs, Output};
use super::console::{Console, print_causes, stopped};
use crate::runtime::block_on;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Install OLM or complete an interrupted installation
    ///
    /// Downloads the manifests of the OLM release that olmkit is tested with, and prints their URLs and checksums.
    /// Creates no catalog unless you pass --catalog-image or --with-catalogs.
    Install(Box<InstallArgs>),
    /// Show whether OLM is installed and healthy
    ///
    /// Use it if operators are not installed: prints the causes, such as a missing CRD or a crashing pod, with fixes.
    /// Exits with 1 if OLM is not healthy.
    Status(StatusArgs),
    /// Uninstall OLM and everything it created
    ///
    /// Fails while operators are installed, unless you pass --with-operators. Run it with --dry-run first.
    Uninstall(UninstallArgs),
}

// Its own --version names OLM's version, as in operator-sdk.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit olm install",
    "olmkit olm install --version 0.45.0",
    "olmkit olm install --from deploy/chart --olm-image quay.io/operator-framework/olm:v0.46.0"
])]
struct InstallArgs {
    /// Read manifests from a directory instead of downloading them: a release's crds.yaml and olm.yaml, or OLM's chart
    #[arg(long, value_name = "DIR", env = "OLMKIT_OLM_MANIFESTS")]
    from: Option<PathBuf>,
    /// Required checksum of the manifests. If it differs, the error prints the actual one
    #[arg(long, value_name = "SHA256")]
    checksum: Option<String>,
    /// OLM release to download, or latest [default: the newest that olmkit is tested with]. With --from, the version of OLM's
    /// chart
    #[arg(long)]
    version: Option<String>,
    /// Download releases from this URL, which has the paths of OLM's release page
    #[arg(long, value_name = "URL", default_value = release::RELEASES, hide_default_value = true, conflicts_with = "from")]
    releases: String,
    /// Image with /bin/olm, /bin/catalog and /bin/package-server
    #[arg(long, value_name = "IMAGE")]
    olm_image: Option<String>,
    /// Image with /bin/opm, which OLM unpacks bundles with: the olmkit image or operator-framework's opm
    #[arg(long, value_name = "IMAGE")]
    opm_image: Option<String>,
    /// Image with /bin/cp, /bin/cpb and /bin/copy-content [default: the OLM image]
    #[arg(long, value_name = "IMAGE")]
    util_image: Option<String>,
    /// When nodes pull OLM's images
    #[arg(long, default_value = "IfNotPresent", value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: String,
    /// Namespace of OLM
    #[arg(long, default_value = "olm")]
    olm_namespace: String,
    /// Namespace for operators that watch the whole cluster
    #[arg(long, default_value = "operators")]
    operators_namespace: String,
    /// Replicas of packageserver
    #[arg(long, default_value_t = 1)]
    packageserver_replicas: u32,
    /// Catalog for all namespaces [default: none, because an unreachable catalog blocks every installation]
    #[arg(long, value_name = "IMAGE")]
    catalog_image: Option<String>,
    /// Create the catalogs in the release's manifests
    #[arg(long)]
    with_catalogs: bool,
    /// Do not wait for packageserver. Installing operators does not need it
    #[arg(long)]
    no_wait_for_packageserver: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit olm status"])]
struct StatusArgs {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Ignored (operator-sdk compatibility): OLM is found by its Deployments
    #[arg(long = "olm-namespace", hide = true)]
    _olm_namespace: Option<String>,
    /// Ignored (operator-sdk compatibility): the command does not wait
    #[arg(long = "timeout", hide = true)]
    _timeout: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(clap::Args)]
#[command(after_help = examples![
    "olmkit olm uninstall --dry-run",
    "olmkit olm uninstall --with-operators --delete-operands"
])]
struct UninstallArgs {
    /// Namespace of OLM [default: found by its Deployments]
    #[arg(long)]
    olm_namespace: Option<String>,
    /// Also uninstall operators. Keeps their CRDs and custom resources
    #[arg(long)]
    with_operators: bool,
    /// With --with-operators: delete the operators' custom resources, and wait while the operators clean up
    #[arg(long, requires = "with_operators")]
    delete_operands: bool,
    /// Also release these finalizers from custom resources that outlive their operator. Those in the CRD's API group are
    /// always released, because they would block deletion
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    release_finalizers: Vec<String>,
    /// Print the objects that would be deleted without deleting them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Install(args) => install(args),
        Command::Status(args) => status(args),
        Command::Uninstall(args) => uninstall(args),
    }
}

fn install(args: &InstallArgs) -> anyhow::Result<ExitCode> {
    match &args.from {
        Some(directory) => install_from(args, directory),
        None => {
            let version = args.version.as_deref().unwrap_or(release::DEFAULT_VERSION);
            let (directory, downloaded) = block_on(release::fetch(&args.releases, version))??;
            for file in downloaded {
                note!("downloaded {} (sha256 {})", file.url, file.sha256);
            }
            install_from(args, directory.path())
        }
    }
}

fn install_from(args: &InstallArgs, from: &Path) -> anyhow::Result<ExitCode> {
    if let Some(wanted) = &args.checksum {
        let folder = if from.join("Chart.yaml").is_file() {
            from.join("crds")
        } else {
            from.to_owned()
        };
        let found = source::checksum(&folder)?;
        if found != wanted.trim_start_matches("sha256:") {
            bail!(
                "the manifests in {} have checksum {found}, not {wanted}",
                folder.display()
            );
        }
    }
    let version = args
        .version
        .clone()
        .or_else(|| source::version_in_path(from))
        .unwrap_or_else(|| "unknown".into());
    let chart = from.join("Chart.yaml").is_file();
    let image = |given: &Option<String>, flag: &str| match given {
        Some(image) => Ok(image.clone()),
        None if chart => Err(anyhow::anyhow!(
            "OLM's chart does not reference released images; pass {flag}"
        )),
        None => Ok(String::new()),
    };
    let olm_image = image(&args.olm_image, "--olm-image")?;
    let settings = Settings {
        version: version.trim_start_matches('v').to_owned(),
        namespace: args.olm_namespace.clone(),
        catalog_namespace: args.olm_namespace.clone(),
        operators_namespace: args.operators_namespace.clone(),
        opm_image: image(&args.opm_image, "--opm-image")?,
        util_image: args.util_image.clone().unwrap_or_else(|| olm_image.clone()),
        olm_image,
        pull_policy: args.image_pull_policy.clone(),
        packageserver_replicas: args.packageserver_replicas,
        catalog_image: args.catalog_image.clone(),
    };
    let images = source::Images {
        olm: args.olm_image.clone(),
        opm: args.opm_image.clone(),
        util: args.util_image.clone(),
    };
    let manifests = source::read(from, &settings, &images, args.with_catalogs)
        .with_context(|| format!("reading OLM's manifests from {}", from.display()))?;
    let options = InstallOptions {
        timeout: args.cluster.timeout,
        wait_for_packageserver: !args.no_wait_for_packageserver,
    };
    block_on(async {
        let cluster = args.cluster.connect().await?;
        let console = Console::new();
        let ended = olm::install(&cluster, &manifests, &options, &console).await;
        console.finish();
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return stopped(error, Output::Text),
        };
        match ended {
            Ok(()) => {
                println!(
                    "OLM {} is installed",
                    manifests.version.as_deref().unwrap_or("of unknown version")
                );
                Ok(ExitCode::SUCCESS)
            }
            Err(causes) => {
                print_causes(&causes);
                println!("OLM is not ready; fix the cause and run the same command again");
                anyhow::Ok(ExitCode::FAILURE)
            }
        }
    })?
}

fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let looked = block_on(async {
        let cluster = olmkit_cluster::Cluster::connect(args.kubeconfig.as_deref(), None).await?;
        olm::status(&cluster).await
    })?;
    let status = match looked {
        Ok(status) => status,
        Err(error) => return stopped(error, args.output),
    };
    match args.output {
        Output::Json => crate::terminal::json(&status)?,
        Output::Text => print_status(&status),
    }
    Ok(if status.healthy {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_status(status: &Status) {
    if status.installed {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["KIND", "NAMESPACE", "NAME", "STATE"]);
        for component in &status.components {
            let object = &component.object;
            table.add_row([
                object.kind.kind.as_str(),
                object.namespace.as_deref().unwrap_or(""),
                &object.name,
                &component.state,
            ]);
        }
        println!("{table}");
    }
    for cause in &status.causes {
        println!("{cause}");
    }
    let version = status
        .version
        .as_deref()
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    match (status.installed, status.healthy) {
        (false, _) => println!("OLM is not installed"),
        (true, true) => println!("OLM{version} is healthy"),
        (true, false) => println!("OLM{version} is not healthy"),
    }
}

fn uninstall(args: &UninstallArgs) -> anyhow::Result<ExitCode> {
    let options = UninstallOptions {
        namespace: args.olm_namespace.clone(),
        with_operators: args.with_operators,
        operands: args.delete_operands,
        release_finalizers: args.release_finalizers.clone(),
        timeout: args.cluster.timeout,
        dry_run: args.dry_run,
    };
    let ended = block_on(async {
        let cluster = args.cluster.connect().await?;
        let console = Console::new();
        let report = olm::uninstall(&cluster, &options, &console).await;
        console.finish();
        report
    })?;
    let report = match ended {
        Ok(report) => report,
        Err(error) => return stopped(error, args.output),
    };
    match args.output {
        Output::Json => crate::terminal::json(&report)?,
        Output::Text => {
            if args.dry_run {
                report
                    .removed
                    .iter()
                    .for_each(|object| println!("would remove {object}"));
            }
            for kept in &report.kept {
                println!("kept {}: {}", kept.object, kept.why);
            }
            print_released(&report.released, args.dry_run);
            print_causes(&report.causes);
            match (report.causes.is_empty(), report.removed.is_empty()) {
                (false, _) => println!("OLM is not removed"),
                (true, true) => println!("OLM is not installed: nothing to remove"),
                (true, false) if args.dry_run => println!("{} objects would be removed", report.removed.len()),
                (true, false) => println!("OLM is removed: {} objects", report.removed.len()),
            }
        }
    }
    Ok(if report.causes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
