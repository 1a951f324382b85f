//! etcd, kube-apiserver and kube-controller-manager.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;

use crate::access::Access;
use crate::pki::Pki;
use crate::process::{Process, free_ports};
use crate::tools::Programs;
use crate::{Error, Options, arguments};

/// One event for each request and stage, without bodies. Later stages contain all that `RequestReceived` has.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#;

/// On two busy cores the API server needs half a minute to start.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(120);

/// The running API server.
pub(crate) struct Server {
    pub access: Access,
    pub audit_log: Option<PathBuf>,
}

/// Starts etcd and kube-apiserver and waits for `/readyz`.
pub(crate) async fn start(
    programs: &Programs,
    root: &Path,
    pki: &Pki,
    options: &Options,
    processes: &mut Vec<Process>,
) -> Result<Server, Error> {
    let [etcd_port, peer_port, port] = free_ports()?;
    let logs = root.join("logs");
    let etcd_url = format!("http://127.0.0.1:{etcd_port}");
    let mut etcd = Process::start(
        "etcd",
        &logs,
        &programs.etcd,
        etcd_arguments(root, &etcd_url, peer_port, &programs.etcd),
        &[],
    )?;
    etcd.wait_until("client port", START_LIMIT, async || {
        tokio::net::TcpStream::connect(("127.0.0.1", etcd_port))
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await?;
    processes.push(etcd);

    let audit_log = options.audit.then(|| root.join("audit.log"));
    let mut arguments = server_arguments(pki, &etcd_url, port);
    if let Some(log) = &audit_log {
        let policy = root.join("audit-policy.json");
        fs::write(&policy, AUDIT_POLICY).map_err(Error::io("write", &policy))?;
        fs::write(log, "").map_err(Error::io("write", log))?;
        arguments.push(flag("audit-policy-file", policy));
        arguments.push(flag("audit-log-path", log));
        arguments.push(flag("audit-log-maxsize", "1000"));
    }
    if programs.kube_controller_manager.is_none() {
        // No controller creates the service accounts that this plugin requires for pods.
        arguments.push("--disable-admission-plugins=ServiceAccount".into());
    }
    arguments.extend(options.api_server_arguments.iter().map(OsString::from));
    let mut server = Process::start("kube-apiserver", &logs, &programs.kube_apiserver, arguments, &[])?;
    let access = Access::administrator(root, pki, format!("https://127.0.0.1:{port}"))?;
    let client = access.client().await?;
    server
        .wait_until("/readyz", START_LIMIT, async || {
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .map_err(|error| error.to_string())?;
            client
                .request_text(request)
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await?;
    processes.push(server);
    Ok(Server { access, audit_log })
}

/// Starts kube-controller-manager and waits until it has created the default service account, which pods require.
pub(crate) async fn start_controller_manager(
    program: &Path,
    root: &Path,
    pki: &Pki,
    server: &Server,
    processes: &mut Vec<Process>,
) -> Result<(), Error> {
    let [port] = free_ports()?;
    let kubeconfig = server.access.certificate_kubeconfig("controller-manager", pki)?;
    let mut arguments = arguments![
        flag("kubeconfig", kubeconfig),
        flag("root-ca-file", pki.path("ca.crt")),
        flag("service-account-private-key-file", pki.path("service-accounts.key")),
        flag("cluster-signing-cert-file", pki.path("ca.crt")),
        flag("cluster-signing-key-file", pki.path("ca.key")),
        flag("secure-port", port.to_string()),
    ];
    arguments.extend(arguments![
        "--bind-address=127.0.0.1",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        // The default of 20 requests a second would delay the start of all controllers by seconds.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        // The one node has no kubelet that would renew its lease. These two would evict its pods.
        "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
    ]);
    let mut manager = Process::start("kube-controller-manager", &root.join("logs"), program, arguments, &[])?;
    let accounts: Api<ServiceAccount> = Api::namespaced(server.access.client().await?, "default");
    manager
        .wait_until("service account default/default", START_LIMIT, async || {
            accounts
                .get("default")
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await?;
    processes.push(manager);
    Ok(())
}

fn etcd_arguments(root: &Path, url: &str, peer_port: u16, program: &Path) -> Vec<OsString> {
    let peers = format!("http://127.0.0.1:{peer_port}");
    let mut arguments = arguments![
        flag("data-dir", root.join("etcd")),
        flag("listen-client-urls", url),
        flag("advertise-client-urls", url),
        flag("listen-peer-urls", &peers),
        flag("initial-advertise-peer-urls", &peers),
        flag("initial-cluster", format!("default={peers}")),
        "--logger=zap",
    ];
    // No data must survive a crash, so nothing is synced to the disk. Versions before 3.5 do not support the flag.
    let help = std::process::Command::new(program).arg("--help").output();
    if help.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("unsafe-no-fsync")) {
        arguments.push("--unsafe-no-fsync".into());
    }
    arguments
}

fn server_arguments(pki: &Pki, etcd_url: &str, port: u16) -> Vec<OsString> {
    let mut arguments = arguments![
        flag("etcd-servers", etcd_url),
        flag("secure-port", port.to_string()),
        flag("client-ca-file", pki.path("ca.crt")),
        flag("tls-cert-file", pki.path("apiserver.crt")),
        flag("tls-private-key-file", pki.path("apiserver.key")),
        flag("service-account-key-file", pki.path("service-accounts.pub")),
        flag("service-account-signing-key-file", pki.path("service-accounts.key")),
    ];
    arguments.extend(arguments![
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        // A loopback address is not allowed in the Endpoints of the Service `kubernetes`, which is unused here.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--allow-privileged=true",
    ]);
    arguments
}

/// `--name=value`
pub(crate) fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}
