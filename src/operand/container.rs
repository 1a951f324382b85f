//! The container of a server: memcached's arguments, its memory and its files.
use k8s_openapi::{
    api::core::v1::{
        Capabilities, Container, ContainerPort, EmptyDirVolumeSource, Lifecycle, LifecycleHandler, Probe,
        ResourceRequirements, SecretVolumeSource, SecurityContext, SleepAction, TCPSocketAction, Volume, VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};

use super::MEMCACHED;
use crate::api::v1alpha1::{MemcachedSpec, Tls, WarmCache};

/// The user of the servers: any but root works.
const USER: i64 = 1001;

/// A server that does not listen this long after its start is restarted.
const START_SECONDS: i32 = 60;

/// Memory besides the items, in MiB: the program, its threads' buffers, the hash table.
const BASE_MEMORY_MEBIBYTES: i64 = 32;
/// Memory for each connection, in KiB: memcached's read and write buffers.
const CONNECTION_MEMORY_KIBIBYTES: i64 = 16;
/// More of it with TLS.
const TLS_MEMORY_KIBIBYTES: i64 = 32;

/// Runs memcached as a child process of the shell.
///
/// The shell turns the signal of the container runtime into the one with which memcached keeps its items. Memcached rejects the items of
/// a process that stopped in the same second, so the next one starts a second later. When the kubelet has written another certificate,
/// a signal makes memcached load it.
const SCRIPT: &str = r#"[ ! -e /items/memory.meta ] || sleep 1
last=$(readlink /tls/..data)
memcached "$@" & server=$!
trap 'kill -USR1 $server' TERM INT
[ -z "$last" ] || while sleep 5 && kill -0 $server; do
  now=$(readlink /tls/..data)
  [ "$now" = "$last" ] || kill -HUP $server
  last=$now
done &
while wait $server; kill -0 $server 2> /dev/null; do :; done
wait $server
"#;

/// A server that is deleted runs this much longer, while clients that resolve the Service stop using it.
const DRAIN_SECONDS: i64 = 5;

/// Name of the volume of the items. The container has each volume in the directory of its name.
const ITEMS: &str = "items";

/// Name of the volume of the certificate.
const TLS: &str = "tls";

/// With a file for its items, memcached allocates a page of 1 MiB for each of its 39 size classes at its start.
const PAGES_MEBIBYTES: i32 = 40;

/// The container of a server whose image is `image`.
pub(super) fn container(spec: &MemcachedSpec, image: &str) -> Container {
    Container {
        name: MEMCACHED.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(command(spec)),
        args: Some(arguments(spec)),
        ports: Some(vec![ContainerPort {
            name: Some(MEMCACHED.to_owned()),
            container_port: spec.container_port,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        lifecycle: lifecycle(spec),
        liveness_probe: Some(probe(10)),
        readiness_probe: Some(probe(5)),
        // The other probes begin when this one has succeeded, so a new server is ready within a second of its start.
        startup_probe: Some(Probe {
            failure_threshold: Some(START_SECONDS),
            ..probe(1)
        }),
        // Memcached prints why it ends. The status repeats it.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        resources: Some(resources(spec)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            ..SecurityContext::default()
        }),
        volume_mounts: mounts(spec),
        ..Container::default()
    }
}

/// Options and values are separate arguments: memcached reads `-m=64` for the value "=64".
fn arguments(spec: &MemcachedSpec) -> Vec<String> {
    let item = spec.max_item_size_megabytes.map(|size| format!("{size}m"));
    let options = [
        ("-m", Some(memory_mebibytes(spec).to_string())),
        ("-c", Some(spec.max_connections.to_string())),
        ("-p", Some(spec.container_port.to_string())),
        ("-t", spec.threads.map(|threads| threads.to_string())),
        ("-I", item),
    ];
    let given = options
        .into_iter()
        .filter_map(|(option, value)| Some([option.to_owned(), value?]));
    given
        .flatten()
        .chain(file_arguments(spec))
        .chain(spec.extra_args.iter().flatten().cloned())
        .collect()
}

fn probe(period_seconds: i32) -> Probe {
    Probe {
        tcp_socket: Some(TCPSocketAction {
            port: IntOrString::String(MEMCACHED.to_owned()),
            ..TCPSocketAction::default()
        }),
        period_seconds: Some(period_seconds),
        ..Probe::default()
    }
}

/// The container's requests and limits: what the user says, and memory from `memoryLimitMegabytes` where the user says
/// nothing about memory. Request and limit are equal then: a cache uses all of its memory sooner or later.
pub fn resources(spec: &MemcachedSpec) -> ResourceRequirements {
    let given = spec.resources.clone().unwrap_or_default();
    let mut limits = given.limits.unwrap_or_default();
    let mut requests = given.requests.unwrap_or_default();
    let memory = limits.entry("memory".to_owned());
    let memory = memory.or_insert_with(|| container_memory(spec));
    requests.entry("memory".to_owned()).or_insert(memory.clone());
    ResourceRequirements {
        limits: Some(limits),
        requests: Some(requests),
        ..ResourceRequirements::default()
    }
}

/// Memory of the container: the items, a quarter of that for the hash table and what slabs waste, the buffers of all
/// connections, and the program.
fn container_memory(spec: &MemcachedSpec) -> Quantity {
    let items = i64::from(spec.memory_limit_megabytes);
    let tls = spec.tls.as_ref().map_or(0, |_| TLS_MEMORY_KIBIBYTES);
    let connections = (i64::from(spec.max_connections) * (CONNECTION_MEMORY_KIBIBYTES + tls) + 1023) / 1024;
    let besides = i64::from(memory_mebibytes(spec)) + connections + BASE_MEMORY_MEBIBYTES;
    Quantity(format!("{}Mi", besides + items / 4))
}

/// Memcached keeps its items over a restart.
fn is_warm(spec: &MemcachedSpec) -> bool {
    spec.warm_cache == Some(WarmCache::WarmRestart)
}

/// Memcached's option -m: the memory for items.
fn memory_mebibytes(spec: &MemcachedSpec) -> i32 {
    let pages = if is_warm(spec) { PAGES_MEBIBYTES } else { 0 };
    spec.memory_limit_megabytes.saturating_add(pages)
}

/// The command. Its arguments are those of memcached.
fn command(spec: &MemcachedSpec) -> Vec<String> {
    match volumes(spec) {
        None => vec![MEMCACHED.to_owned()],
        Some(_) => ["/bin/sh", "-c", SCRIPT, MEMCACHED].map(str::to_owned).into(),
    }
}

/// The arguments about files.
fn file_arguments(spec: &MemcachedSpec) -> Vec<String> {
    let items = is_warm(spec).then(|| vec!["-e".to_owned(), format!("/{ITEMS}/memory")]);
    let tls = spec.tls.as_ref().map(|tls| {
        let verify = match tls.verify_clients {
            true => format!(",ssl_ca_cert=/{TLS}/ca.crt,ssl_verify_mode=2"),
            false => String::new(),
        };
        let options = format!("ssl_chain_cert=/{TLS}/tls.crt,ssl_key=/{TLS}/tls.key{verify}");
        vec!["-Z".to_owned(), "-o".to_owned(), options]
    });
    items.into_iter().chain(tls).flatten().collect()
}

/// The volumes, if there are any.
pub(super) fn volumes(spec: &MemcachedSpec) -> Option<Vec<Volume>> {
    let items = is_warm(spec).then(|| items(spec));
    let volumes: Vec<Volume> = items.into_iter().chain(spec.tls.as_ref().map(certificate)).collect();
    (!volumes.is_empty()).then_some(volumes)
}

/// The volume of the items is memory, which counts as memory of the container.
fn items(spec: &MemcachedSpec) -> Volume {
    let directory = EmptyDirVolumeSource {
        medium: Some("Memory".to_owned()),
        // Memcached stores its metadata in a second file.
        size_limit: Some(Quantity(format!("{}Mi", memory_mebibytes(spec).saturating_add(1)))),
    };
    Volume {
        name: ITEMS.to_owned(),
        empty_dir: Some(directory),
        ..Volume::default()
    }
}

fn certificate(tls: &Tls) -> Volume {
    Volume {
        name: TLS.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(tls.secret_name.clone()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// Where the container has its volumes.
fn mounts(spec: &MemcachedSpec) -> Option<Vec<VolumeMount>> {
    let mount = |volume: Volume| VolumeMount {
        mount_path: format!("/{}", volume.name),
        name: volume.name,
        read_only: volume.secret.map(|_| true),
        ..VolumeMount::default()
    };
    volumes(spec).map(|volumes| volumes.into_iter().map(mount).collect())
}

/// The server goes on for a moment when its pod is deleted.
fn lifecycle(spec: &MemcachedSpec) -> Option<Lifecycle> {
    let sleep = LifecycleHandler {
        sleep: Some(SleepAction { seconds: DRAIN_SECONDS }),
        ..LifecycleHandler::default()
    };
    spec.warm_cache.map(|_| Lifecycle {
        pre_stop: Some(sleep),
        ..Lifecycle::default()
    })
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fs,
        os::unix::fs::PermissionsExt as _,
        path::Path,
        process::{Command, ExitStatus},
        thread,
        time::Duration,
    };

    use serde_json::json;

    use super::*;
    use crate::operand::{deployment, fixtures::memcached};

    #[test]
    fn arguments_follow_the_spec() {
        let given = |spec| arguments(&memcached(&spec).spec).join(" ");
        assert_eq!(given(json!({})), "-m 64 -c 1024 -p 11211");
        let spec = json!({ "threads": 8, "maxItemSizeMegabytes": 2, "extraArgs": ["-o", "modern"] });
        assert_eq!(given(spec), "-m 64 -c 1024 -p 11211 -t 8 -I 2m -o modern");
    }

    #[test]
    fn memory_follows_the_cache_size() {
        let memory = |spec| {
            let resources = resources(&memcached(&spec).spec);
            let text = |map: Option<BTreeMap<String, Quantity>>| map.unwrap()["memory"].0.clone();
            (text(resources.requests), text(resources.limits))
        };
        assert_eq!(memory(json!({})), ("128Mi".into(), "128Mi".into()));
        assert_eq!(
            memory(json!({ "memoryLimitMegabytes": 1024 })),
            ("1328Mi".into(), "1328Mi".into())
        );
        assert_eq!(memory(json!({ "maxConnections": 1 })), ("113Mi".into(), "113Mi".into()));
        assert_eq!(
            memory(json!({ "resources": { "limits": { "memory": "1Gi" } } })),
            ("1Gi".into(), "1Gi".into())
        );
        let tls = json!({ "tls": { "secretName": "cert" } });
        assert_eq!(memory(tls), ("160Mi".into(), "160Mi".into()));
        let both = json!({ "resources": { "limits": { "memory": "1Gi" }, "requests": { "memory": "512Mi" } } });
        assert_eq!(memory(both), ("512Mi".into(), "1Gi".into()));
    }

    #[test]
    fn other_resources_are_the_users() {
        let spec = json!({ "resources": { "limits": { "cpu": "2" }, "requests": { "cpu": "500m" } } });
        let resources = resources(&memcached(&spec).spec);
        assert_eq!(resources.limits.unwrap()["cpu"].0, "2");
        assert_eq!(resources.requests.unwrap()["cpu"].0, "500m");
    }

    #[test]
    fn a_warm_restart_needs_a_volume_and_a_shell() {
        let spec = json!({ "memoryLimitMegabytes": 1024, "warmCache": "WarmRestart" });
        let deployment = serde_json::to_value(deployment(&memcached(&spec), "m:1")).unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["args"].as_array().unwrap()[1], "1064");
        assert_eq!(
            container["resources"]["limits"]["memory"], "1368Mi",
            "40 MiB more than without"
        );
        let fields = ["command", "args", "volumeMounts", "lifecycle"].map(|field| (field, &container[field]));
        insta::assert_json_snapshot!(json!({ "volumes": pod["volumes"], "container": fields }));
    }

    /// The pod template is the one of earlier versions, or an upgrade of the operator would restart the servers.
    #[test]
    fn without_the_field_nothing_changes() {
        let spec = memcached(&json!({})).spec;
        assert_eq!(
            (command(&spec), memory_mebibytes(&spec)),
            (vec![MEMCACHED.to_owned()], 64)
        );
        assert_eq!((file_arguments(&spec), volumes(&spec)), (Vec::new(), None));
        assert_eq!((mounts(&spec), lifecycle(&spec)), (None, None));
    }

    #[test]
    fn tls_needs_a_secret() {
        let spec = |tls| memcached(&json!({ "tls": tls })).spec;
        let plain = spec(json!({ "secretName": "cert" }));
        assert_eq!(
            file_arguments(&plain),
            ["-Z", "-o", "ssl_chain_cert=/tls/tls.crt,ssl_key=/tls/tls.key"]
        );
        let volumes = serde_json::to_value(volumes(&plain)).unwrap();
        assert_eq!(volumes, json!([{ "name": "tls", "secret": { "secretName": "cert" } }]));
        let mounts = serde_json::to_value(mounts(&plain)).unwrap();
        assert_eq!(
            mounts,
            json!([{ "name": "tls", "mountPath": "/tls", "readOnly": true }])
        );
        assert_eq!((command(&plain).len(), memory_mebibytes(&plain)), (4, 64));
        let verified = file_arguments(&spec(json!({ "secretName": "cert", "verifyClients": true })));
        assert!(
            verified[2].ends_with(",ssl_ca_cert=/tls/ca.crt,ssl_verify_mode=2"),
            "{verified:?}"
        );
    }

    /// Runs the script with the directory `root` for `/items`, and a program for memcached. Sends SIGTERM when the program has started.
    fn run(root: &Path, program: &str) -> ExitStatus {
        run_script(SCRIPT, root, program)
    }

    fn run_script(script: &str, root: &Path, program: &str) -> ExitStatus {
        let (memcached, directory) = (root.join(MEMCACHED), root.display().to_string());
        let script = script.replace("/items", &directory).replace("/tls", &directory);
        let script = script.replace("sleep 5", "sleep 0.1");
        fs::write(&memcached, format!("#!/bin/sh\n{program}\n")).unwrap();
        fs::set_permissions(&memcached, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", root.display(), std::env::var("PATH").unwrap_or_default());
        // A shell cannot trap signals that it ignores from its start, as under nohup.
        let mut shell = Command::new("env");
        shell
            .args(["--default-signal=HUP", "/bin/sh", "-c", &script, MEMCACHED, "-m", "64"])
            .env("PATH", path)
            .current_dir(root);
        let mut child = shell.spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if root.join("started").exists() {
                let pid = child.id().to_string();
                Command::new("kill").arg(pid).status().unwrap();
            }
            thread::sleep(Duration::from_millis(50));
        }
        child.wait().unwrap()
    }

    #[test]
    fn the_shell_turns_the_signal_into_that_of_a_warm_restart() {
        let root = tempfile::tempdir().unwrap();
        let program = "trap 'echo \"$@\" > stopped; exit 0' USR1; touch started; for i in $(seq 1800); do sleep 0.1; done; exit 99";
        assert_eq!(run(root.path(), program).code(), Some(0));
        assert_eq!(fs::read_to_string(root.path().join("stopped")).unwrap(), "-m 64\n");
    }

    #[test]
    fn a_changed_certificate_is_loaded() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("first", root.path().join("..data")).unwrap();
        let program = "trap 'touch started' HUP; trap 'exit 7' USR1; ln -sfn second ..data; for i in $(seq 1800); do sleep 0.1; done; exit 99";
        assert_eq!(run(root.path(), program).code(), Some(7));
    }

    #[test]
    fn the_shell_ends_with_the_exit_code_of_memcached() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(run(root.path(), "exit 71").code(), Some(71));
        assert_eq!(run(root.path(), "kill -9 $$").code(), Some(137));
        // It ends before the shell waits for it.
        let late = SCRIPT.replacen("\nwhile ", "\nsleep 1\nwhile ", 1);
        assert_eq!(run_script(&late, root.path(), "exit 71").code(), Some(71));
    }
}
