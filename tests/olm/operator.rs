//! The operator as a process that has what its container would have: arguments, environment, identity.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::EnvVar;

/// Ends with this value.
pub(crate) struct Operator {
    process: Child,
    log: tempfile::NamedTempFile,
}

impl Operator {
    pub(crate) async fn start(deployment: &Deployment, kubeconfig: &Path) -> Self {
        let pod = &deployment.spec.as_ref().unwrap().template;
        let container = pod.spec.as_ref().unwrap().containers.first().unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let output = File::create(log.path()).unwrap();
        // The addresses are the pod's; on this machine they may be taken.
        let arguments = container.args.iter().flatten().filter(|argument| !argument.contains("-bind-address"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_memcached-operator"));
        command
            .args(arguments)
            .args(["--health-probe-bind-address=0", "--metrics-bind-address=0"])
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        for variable in container.env.iter().flatten() {
            command.env(&variable.name, value(variable, deployment));
        }
        Self { process: command.spawn().unwrap(), log }
    }

    /// Lines of the log in which the API server refused something.
    pub(crate) fn forbidden(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.log.path()).unwrap();
        log.lines().filter(|line| line.contains("forbidden") || line.contains("Forbidden")).map(str::to_owned).collect()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("--- operator\n{}", std::fs::read_to_string(self.log.path()).unwrap_or_default());
        }
    }
}

/// What the kubelet would put into the container.
fn value(variable: &EnvVar, deployment: &Deployment) -> String {
    if let Some(value) = &variable.value {
        return value.clone();
    }
    let field = variable.value_from.as_ref().and_then(|source| source.field_ref.as_ref()).unwrap();
    let annotations = deployment.spec.as_ref().unwrap().template.metadata.as_ref().unwrap().annotations.as_ref().unwrap();
    match field.field_path.as_str() {
        "metadata.namespace" => deployment.metadata.namespace.clone().unwrap(),
        "metadata.name" => "memcached-operator-controller-manager-0".to_owned(),
        path => {
            let annotation = path.strip_prefix("metadata.annotations['").and_then(|rest| rest.strip_suffix("']"));
            let annotation = annotation.unwrap_or_else(|| panic!("{}: what is {path}?", variable.name));
            annotations.get(annotation).cloned().unwrap_or_default()
        }
    }
}
