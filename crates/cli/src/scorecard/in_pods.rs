//! `olmkit scorecard --cluster`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use olmkit::object::UntrustedText;
use olmkit::scorecard::{self, Bundle, Configuration, TestList};
use olmkit::validate::Selector;
use olmkit_cluster::scorecard::{Options, PodSecurity, Run, STORAGE_IMAGE, UNTAR_IMAGE, pods_of};
use olmkit_cluster::{Cluster, Error};

use crate::cluster_args::Output;
use crate::console::{Console, print_causes, stopped};
use crate::runtime::block_on;
use crate::signals;

// No doc comment: the command that flattens this would show it as its own help.
#[derive(clap::Args)]
#[command(next_help_heading = "Tests in pods")]
pub struct PodFlags {
    /// Run the tests that have their own images in pods. The flags below apply to these
    #[arg(long)]
    pub cluster: bool,
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the pods [default: that of the kubeconfig's current context]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Service account of the pods. Confirms the one that a bundle names [default: default]
    #[arg(short, long, value_name = "NAME")]
    service_account: Option<String>,
    /// Time limit for each test, including the image pull [default: 2m]
    #[arg(short, long, value_name = "DURATION", value_parser = crate::cluster_args::duration)]
    wait_time: Option<Duration>,
    /// Keep the pods
    #[arg(short = 'x', long)]
    skip_cleanup: bool,
    /// Directory for test output, in DIR/SUITE/TEST [default: test-output]
    #[arg(short, long, value_name = "DIR")]
    test_output: Option<PathBuf>,
    /// Image with sleep and tar that gives these files [default: operator-sdk's]
    #[arg(short = 'b', long, value_name = "IMAGE")]
    storage_image: Option<String>,
    /// Image with sh, cat and tar that unpacks the bundle. Needed only for files above 900 kB [default: operator-sdk's]
    #[arg(short, long, value_name = "IMAGE")]
    untar_image: Option<String>,
    /// Security context of the pods [default: restricted]
    #[arg(long, value_enum)]
    pod_security: Option<Security>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Security {
    /// Settings that the restricted pod security standard allows
    Restricted,
    /// No security context: images may run as root
    Legacy,
}

impl PodFlags {
    /// Reports the flags that have no effect because no pod is started.
    pub fn note_without_effect(&self) {
        if self.cluster {
            return;
        }
        let given: Vec<&str> = [
            ("--kubeconfig", self.kubeconfig.is_some()),
            ("--namespace", self.namespace.is_some()),
            ("--service-account", self.service_account.is_some()),
            ("--wait-time", self.wait_time.is_some()),
            ("--skip-cleanup", self.skip_cleanup),
            ("--test-output", self.test_output.is_some()),
            ("--storage-image", self.storage_image.is_some()),
            ("--untar-image", self.untar_image.is_some()),
            ("--pod-security", self.pod_security.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect();
        if !given.is_empty() {
            note!(
                "note: without --cluster no pods are started; ignored: {}",
                given.join(", ")
            );
        }
    }

    fn options(&self, service_account: String) -> Options {
        let default = Options::default();
        Options {
            service_account,
            limit: self.wait_time.unwrap_or(default.limit),
            security: match self.pod_security {
                Some(Security::Legacy) => PodSecurity::Legacy,
                Some(Security::Restricted) | None => PodSecurity::Restricted,
            },
            keep: self.skip_cleanup,
            output: self.test_output.clone().unwrap_or(default.output),
            storage_image: self.storage_image.clone().unwrap_or_else(|| STORAGE_IMAGE.to_owned()),
            always_untar: self.untar_image.is_some(),
            untar_image: self.untar_image.clone().unwrap_or_else(|| UNTAR_IMAGE.to_owned()),
        }
    }
}

/// Origin of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The author of the bundle.
    Bundle,
    /// The user, by a flag.
    User,
}

/// The service account of the pods. The author of a bundle must not choose one with more permissions than its user
/// expects.
fn service_account<'a>(flag: Option<&'a str>, configured: &'a str, origin: Origin) -> Result<&'a str, String> {
    match (flag, configured) {
        (Some(flag), _) => Ok(flag),
        (None, "" | "default") => Ok("default"),
        (None, configured) if origin == Origin::User => Ok(configured),
        (None, configured) => Err(format!(
            "the bundle runs its tests with the service account {0:?}; confirm it with --service-account {0}, or pass another one",
            UntrustedText::new(configured).to_string()
        )),
    }
}

/// Runs the selected tests, those with their own images in pods. Returns an exit code if they cannot be run. Removes
/// the created objects in any case, even after an interruption.
pub fn run(
    flags: &PodFlags,
    bundle: &Bundle<'_>,
    configuration: (&Configuration, Origin),
    selector: &Selector,
) -> anyhow::Result<Result<TestList, ExitCode>> {
    let (configuration, origin) = configuration;
    let stages = scorecard::stages(configuration, selector);
    let account = service_account(flags.service_account.as_deref(), &configuration.service_account, origin);
    let account = match account {
        Ok(account) => account.to_owned(),
        Err(_) if pods_of(&stages) == 0 => String::new(),
        Err(problem) => {
            eprintln!("error: {problem}");
            return Ok(Err(ExitCode::from(2)));
        }
    };
    let options = flags.options(account);
    let console = Console::new();
    let outcome = block_on(async {
        let cluster = Cluster::connect(flags.kubeconfig.as_deref(), flags.namespace.as_deref()).await?;
        let run = Run::new(&cluster, &options, &console);
        let missing = run.missing_rights().await?;
        if !missing.is_empty() {
            print_causes(&missing);
            return Ok(Err(ExitCode::FAILURE));
        }
        let ended = tokio::select! {
            ended = run.run(bundle, &stages) => Some(ended),
            () = signals::interrupted() => None,
        };
        if options.keep {
            eprintln!(
                "kept: kubectl -n {} get pods,configmaps -l testrun={}",
                UntrustedText::new(&cluster.namespace),
                run.name
            );
        } else {
            run.clean_up().await?;
        }
        match ended {
            Some(tests) => tests.map(Ok),
            None => {
                eprintln!("interrupted");
                Ok(Err(ExitCode::from(130)))
            }
        }
    })?;
    console.finish();
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(error @ Error::Bundle(_)) => Err(error.into()),
        Err(error) => stopped(error, Output::Text).map(Err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_has_precedence_and_a_bundle_needs_one() {
        let of = |flag, configured| service_account(flag, configured, Origin::Bundle);
        assert_eq!(of(None, ""), Ok("default"));
        assert_eq!(of(None, "default"), Ok("default"));
        assert_eq!(of(Some("mine"), "cluster-admin"), Ok("mine"));
        assert_eq!(of(Some("default"), "cluster-admin"), Ok("default"));
        let problem = of(None, "cluster-admin").unwrap_err();
        assert!(problem.contains("--service-account cluster-admin"), "{problem}");
        assert_eq!(service_account(None, "mine", Origin::User), Ok("mine"));
    }
}
