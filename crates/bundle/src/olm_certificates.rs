//! The certificate that OLM v0 creates for a Deployment with webhooks or API services, and the mounts that it replaces.

use std::collections::BTreeSet;

use serde_json::Value;

/// Volumes in which OLM v0 mounts the certificate that it creates, and the mount paths. OLM replaces a mount with the
/// same volume name or path.
pub const MOUNTS: [(&str, &str); 2] = [
    ("apiservice-cert", "/apiserver.local.config/certificates"),
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs"),
];

/// Names of the volumes that a pod's containers mount after OLM has mounted its certificate. The kubelet waits for these only.
/// OLM leaves init containers unchanged.
pub fn mounted(pod: &Value, with_certificate: bool) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (key, replaced) in [("initContainers", false), ("containers", with_certificate)] {
        for container in items(pod, key) {
            let mounts = items(container, "volumeMounts").iter();
            let mut mounts: Vec<(&str, &str)> = mounts
                .map(|mount| (text(mount, "name"), text(mount, "mountPath")))
                .collect();
            for (volume, path) in MOUNTS.iter().filter(|_| replaced) {
                if let Some(mount) = mounts.iter_mut().find(|mount| mount.0 == *volume || mount.1 == *path) {
                    mount.0 = volume;
                }
            }
            names.extend(mounts.into_iter().map(|(name, _)| name));
        }
    }
    names
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
