//! A cluster with the real OLM v1, and a registry.

use std::path::Path;
use std::process::Command;

use kube_testbed::Options;
use serde_json::Value;
use test_support::registry::{Registry, Setup};

use super::definitions;
use super::olm_v1::{OlmV1, operator_controller};
use super::recorded::GROUP;
use crate::harness::{Answer, Cluster, answer};

pub const NAMESPACE: &str = "cache";
pub const PACKAGE: &str = "memcached-operator";

/// The manifests of OLM v1.
#[derive(Clone, Copy, PartialEq)]
pub enum Channel {
    Standard,
    Experimental,
}

pub struct Site {
    pub cluster: Cluster,
    registry: Registry,
    _olm: OlmV1,
}

impl Site {
    /// Starts everything. Prints the reason and returns `None` if a component is missing.
    pub async fn start(channel: Channel) -> Option<Self> {
        let program = operator_controller().map_err(|why| println!("skipped: {why}")).ok()?;
        let registry = Registry::start(&Setup {
            tls: true,
            ..Setup::default()
        })?;
        let cluster = Cluster::start(Options::default()).await;
        if !definitions::standard(&cluster).await {
            return None;
        }
        let mut gates = "";
        if channel == Channel::Experimental {
            definitions::experimental(&cluster).await;
            gates = "--feature-gates=BoxcutterRuntime=true,SingleOwnNamespaceInstallSupport=true,DeploymentConfig=true";
        }
        cluster.namespace(NAMESPACE).await;
        let olm = OlmV1::start(&cluster, &program, &registry, gates).await;
        Some(Site {
            cluster,
            registry,
            _olm: olm,
        })
    }

    pub fn repository(&self) -> String {
        format!("{}/e2e", self.registry.host())
    }

    /// The command, trusting the registry as the cluster does.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.cluster.command(arguments);
        if matches!(arguments, ["run" | "image", ..] | ["extension", "diff", ..]) {
            command.arg("--ca-file").arg(self.registry.authority());
        }
        command
            .env("NO_PROXY", "localhost")
            .env("OLMKIT_IMAGE_STORE", self.cluster.folder.path().join("store"));
        command
    }

    pub async fn olmkit(&self, arguments: &[&str]) -> Answer {
        let mut command = self.command(arguments);
        let began = std::time::Instant::now();
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let answer = answer(&output);
        let how = format!("after {:.1} s", began.elapsed().as_secs_f64());
        self.cluster.record(arguments, &how, &answer);
        answer
    }

    async fn flow(&self, command: &str, bundle: &Path, more: &[&str]) -> Answer {
        let repository = self.repository();
        let mut arguments = vec![
            "run",
            command,
            bundle.to_str().unwrap(),
            "--olm",
            "v1",
            "-n",
            NAMESPACE,
            "-o",
            "json",
        ];
        arguments.extend(["--push-to", &repository]);
        arguments.extend(more);
        self.olmkit(&arguments).await
    }

    pub async fn run_bundle(&self, bundle: &Path, more: &[&str]) -> Answer {
        self.flow("bundle", bundle, more).await
    }

    pub async fn upgrade(&self, bundle: &Path) -> Answer {
        self.flow("bundle-upgrade", bundle, &[]).await
    }

    pub async fn extension(&self) -> Option<Value> {
        self.cluster
            .get(GROUP, "ClusterExtension", "clusterextensions", None, PACKAGE)
            .await
    }
}
