//! `--olm v1` of `olmkit run bundle` and `olmkit run bundle-upgrade`

use std::process::ExitCode;

use olmkit::object::shell_word;
use olmkit_cluster::v1::{self, Loaded, Repositories, RunOptions};
use olmkit_cluster::{Cause, Code, Error, InstallMode};
use olmkit_cluster::{Conclusion, Outcome};

use super::Common;
use crate::cluster_args::Output;
use crate::console::{Console, print_causes, stopped};

/// The operation on the bundle.
pub struct Request<'r> {
    pub bundle: &'r str,
    pub common: &'r Common,
    pub install_mode: Option<InstallMode>,
    pub rollback: bool,
    pub check_only: bool,
    pub is_upgrade: bool,
}

/// Runs the flow to its end, or until the user interrupts it.
pub async fn run(request: &Request<'_>) -> anyhow::Result<ExitCode> {
    let common = request.common;
    anyhow::ensure!(
        common.pull_secret_name.is_none(),
        "--pull-secret-name: OLM v1 has no pull secrets for single operators; docs/guides/olm-v1.md describes its own"
    );
    anyhow::ensure!(
        common.serve_from_host.is_none(),
        "--serve-from-host: OLM v1 reads catalogs only from images; pass --push-to"
    );
    anyhow::ensure!(
        common.service_account.is_none(),
        "--service-account: no pod serves a catalog for OLM v1; omit it"
    );
    let client = common.registry.client()?;
    let options = RunOptions {
        install_mode: request.install_mode.clone(),
        repositories: common.push_to.as_ref().map(|push_to| Repositories {
            push_to: push_to.clone(),
            pull_from: common.pull_from.clone().unwrap_or_else(|| push_to.clone()),
        }),
        timeout: common.cluster.timeout,
        rollback: request.rollback,
        check_only: request.check_only,
    };
    let begun = async {
        let loaded = v1::load(request.bundle, &client).await?;
        Ok::<_, Error>((loaded, common.cluster.connect().await?))
    };
    let (mut loaded, cluster) = match begun.await {
        Ok(begun) => begun,
        Err(error) => return stopped(error, common.output),
    };
    let console = Console::new();
    let names = Names::new(&loaded, &cluster.namespace);
    let flow = async {
        if request.is_upgrade {
            v1::upgrade(&cluster, &mut loaded, &options, &client, &console).await
        } else {
            v1::run(&cluster, &mut loaded, &options, &client, &console).await
        }
    };
    let ended = tokio::select! {
        ended = flow => Some(ended),
        () = crate::signals::interrupted() => None,
    };
    console.finish();
    match ended {
        Some(Ok(outcome)) => print(&outcome, common.output),
        Some(Err(error)) => stopped(error, common.output),
        None => interrupted(&names, common.output),
    }
}

/// Names in messages.
struct Names {
    package: String,
    csv: String,
    namespace: String,
}

impl Names {
    fn new(loaded: &Loaded, namespace: &str) -> Self {
        Self {
            package: loaded.facts.package.clone(),
            csv: loaded.facts.csv_name().to_owned(),
            namespace: namespace.to_owned(),
        }
    }
}

/// Nothing here depends on this process once it is in the cluster.
fn interrupted(names: &Names, output: Output) -> anyhow::Result<ExitCode> {
    let Names {
        package,
        csv,
        namespace,
    } = names;
    let cause = Cause::passing(
        Code::Interrupted,
        "interrupted; the objects created so far are kept, and OLM v1 continues",
        format!(
            "run the same command again to continue, or remove it: olmkit cleanup {} --olm v1 -n {namespace}",
            shell_word(package)
        ),
    );
    if output == Output::Json {
        let result = serde_json::json!({"result": "interrupted", "package": package, "clusterServiceVersion": csv, "namespace": namespace, "causes": [cause]});
        crate::terminal::json(&result)?;
    } else {
        print_causes(&[cause]);
    }
    Ok(ExitCode::from(130))
}

fn print(outcome: &Outcome, output: Output) -> anyhow::Result<ExitCode> {
    if output == Output::Text && outcome.result == Conclusion::Failed {
        print_causes(&outcome.causes);
        println!(
            "{} is not installed; fix the cause and run the same command again, or remove it: olmkit cleanup {} --olm v1 -n {}",
            outcome.csv,
            shell_word(&outcome.package),
            outcome.namespace
        );
        return Ok(ExitCode::FAILURE);
    }
    super::print(outcome, output)
}
