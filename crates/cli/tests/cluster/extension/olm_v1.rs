//! OLM v1 as processes next to the control plane: catalogd, which builds from its Go module, and a previously built
//! operator-controller. Both expect to run in pods: they read the name of their service account from a token at a fixed
//! path, so each has a mount namespace with that path in memory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::registry::{Registry, free_port};

use crate::harness::{Cluster, LIMIT};

/// The namespace of OLM v1.
pub const SYSTEM: &str = "olmv1-system";

/// The two controllers, ended when dropped.
pub struct OlmV1 {
    processes: Vec<(&'static str, Child)>,
    directory: tempfile::TempDir,
}

/// The path of operator-controller, or why it does not run.
pub fn operator_controller() -> Result<PathBuf, String> {
    let path = std::env::var_os("OPERATOR_CONTROLLER").ok_or(
        "OPERATOR_CONTROLLER does not name the program operator-controller, which does not build from the Go module proxy alone",
    )?;
    let path = PathBuf::from(path);
    if !path.is_file() {
        return Err(format!(
            "OPERATOR_CONTROLLER names {}, which is not a file",
            path.display()
        ));
    }
    let catalogd = catalogd();
    if !catalogd.is_file() {
        return Err(format!(
            "{} is not there; dev/tools/build.sh catalogd builds it",
            catalogd.display()
        ));
    }
    unshare().map(|_| path)
}

fn catalogd() -> PathBuf {
    kube_testbed::tools::cache().unwrap().join("bin/catalogd")
}

/// The command that gives a process its own mounts, as this user may.
fn unshare() -> Result<&'static [&'static str], String> {
    const WAYS: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--map-root-user", "--mount"]];
    WAYS.into_iter()
        .find(|way| {
            let tried = Command::new(way[0])
                .args(&way[1..])
                .arg("true")
                .stderr(Stdio::null())
                .status();
            tried.is_ok_and(|status| status.success())
        })
        .ok_or_else(|| "this user may not make a mount namespace (unshare --mount)".to_owned())
}

impl OlmV1 {
    /// Starts both, operator-controller with a flag for its gates. The registry has TLS with a private authority, which
    /// they trust.
    pub async fn start(cluster: &Cluster, program: &Path, registry: &Registry, gates: &str) -> Self {
        cluster.namespace(SYSTEM).await;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "olmv1", "namespace": SYSTEM}});
        cluster.apply("serviceaccounts", account).await;
        let kubeconfig = cluster.plane.service_account_kubeconfig(SYSTEM, "olmv1").await.unwrap();
        let kubeconfig: Value = serde_yaml::from_str(&fs::read_to_string(kubeconfig).unwrap()).unwrap();
        let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("token"), token).unwrap();
        fs::create_dir_all(at("authorities")).unwrap();
        fs::copy(registry.authority(), at("authorities/ca.crt")).unwrap();
        // The registry's certificate is for localhost, as is catalogd's server.
        let (certificate, key) = (
            registry.folder.path().join("server.crt"),
            registry.folder.path().join("server.key"),
        );
        let hooks = at("catalogd-tmp/k8s-webhook-server/serving-certs");
        fs::create_dir_all(&hooks).unwrap();
        fs::copy(&certificate, hooks.join("tls.crt")).unwrap();
        fs::copy(&key, hooks.join("tls.key")).unwrap();
        let mut olm = Self {
            processes: Vec::new(),
            directory,
        };
        let content = free_port();
        let authorities = format!("--pull-cas-dir={}", olm.at("authorities").display());
        olm.run(
            cluster,
            "catalogd",
            &catalogd(),
            &[
                format!("--external-address=localhost:{content}"),
                format!("--catalogs-server-addr=127.0.0.1:{content}"),
                format!("--metrics-bind-address=127.0.0.1:{}", free_port()),
                format!("--webhook-server-port={}", free_port()),
                format!("--cache-dir={}", olm.at("catalogd-cache").display()),
                format!("--tls-cert={}", certificate.display()),
                format!("--tls-key={}", key.display()),
                authorities.clone(),
            ],
        );
        olm.run(
            cluster,
            "operator-controller",
            program,
            &[
                format!("--cache-path={}", olm.at("operator-controller-cache").display()),
                format!("--catalogd-cas-dir={}", olm.at("authorities").display()),
                authorities,
                gates.to_owned(),
            ],
        );
        olm
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&mut self, cluster: &Cluster, name: &'static str, program: &Path, arguments: &[String]) {
        let health = free_port();
        let temporary = self.at(&format!("{name}-tmp"));
        for directory in [&temporary, &self.at(&format!("{name}-cache"))] {
            fs::create_dir_all(directory).unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let log = fs::File::create(self.at(&format!("{name}.log"))).unwrap();
        let way = unshare().unwrap();
        let script = "run=$(readlink -f /var/run) && mount -t tmpfs tmpfs \"$run\" && mkdir -p \"$run/secrets/kubernetes.io/serviceaccount\" \
                      && cp \"$0\" \"$run/secrets/kubernetes.io/serviceaccount/token\" && exec \"$@\"";
        let child = Command::new(way[0])
            .args(&way[1..])
            .args(["sh", "-c", script])
            .arg(self.at("token"))
            .arg(program)
            .args(arguments.iter().filter(|argument| !argument.is_empty()))
            .args([
                format!("--system-namespace={SYSTEM}"),
                format!("--health-probe-bind-address=127.0.0.1:{health}"),
            ])
            .env("KUBECONFIG", cluster.plane.kubeconfig())
            .env("TMPDIR", &temporary)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.processes.push((name, child));
        let end = Instant::now() + LIMIT;
        while std::net::TcpStream::connect(("127.0.0.1", health)).is_err() {
            let ended = self.processes.last_mut().unwrap().1.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < end,
                "{name} did not start ({ended:?}): {}",
                self.log_tail(name)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The end of a controller's log.
    pub fn log_tail(&self, name: &str) -> String {
        let log = fs::read_to_string(self.at(&format!("{name}.log"))).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for OlmV1 {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (name, _) in &self.processes {
                println!("== log of {name}\n{}", self.log_tail(name));
            }
        }
        for (_, child) in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
