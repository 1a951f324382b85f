//! Containers: mounts, ports, probes, variables, resources and security.

use std::collections::HashSet;

use olmkit_go::quantity::Quantity;
use serde_json::{Map, Value};

use super::{Fields, amount, flag, is_set, list, maps, number, object, text};
use crate::admission::forms;
use crate::admission::walk::Walk;

pub(super) fn mounts(walk: &mut Walk<'_>, container: &Fields, volumes: &HashSet<&str>, place: [&str; 2]) {
    let is_privileged =
        object(container, "securityContext").is_some_and(|security| flag(security, "privileged") == Some(true));
    for (key, name) in [("volumeMounts", "name"), ("volumeDevices", "name")] {
        for (index, mount) in maps(container, key) {
            let volume = text(mount, name);
            let index = index.to_string();
            if !volume.is_empty() && !volumes.contains(volume) {
                let message = format!("the pod has no volume {volume:?}");
                walk.reject_at(&[place[0], place[1], key, &index, name], message);
            }
            if text(mount, "mountPropagation") == "Bidirectional" && !is_privileged {
                let message = "Bidirectional is available only to privileged containers";
                walk.reject_at(&[place[0], place[1], key, &index, "mountPropagation"], message);
            }
        }
    }
}

pub(super) fn ports(walk: &mut Walk<'_>, container: &Fields, place: [&str; 2], is_on_host: bool) {
    let mut names = HashSet::new();
    for (index, port) in maps(container, "ports") {
        let index = index.to_string();
        let name = text(port, "name");
        if !name.is_empty() && !names.insert(name) {
            walk.reject_at(
                &[place[0], place[1], "ports", &index, "name"],
                "repeats the name of an earlier port",
            );
        }
        let host = number(port, "hostPort").filter(|host| *host != 0);
        if is_on_host && host.is_some_and(|host| number(port, "containerPort") != Some(host)) {
            let message = "must match containerPort when hostNetwork is true";
            walk.reject_at(&[place[0], place[1], "ports", &index, "hostPort"], message);
        }
    }
}

pub(super) fn own_host_ports<'v>(
    walk: &mut Walk<'_>,
    container: &'v Fields,
    place: [&str; 2],
    seen: &mut HashSet<(&'v str, &'v str, i64)>,
) {
    for (index, port) in maps(container, "ports") {
        let Some(host) = number(port, "hostPort").filter(|host| *host != 0) else {
            continue;
        };
        let protocol = Some(text(port, "protocol"))
            .filter(|protocol| !protocol.is_empty())
            .unwrap_or("TCP");
        if !seen.insert((protocol, text(port, "hostIP"), host)) {
            let message = "repeats a port of the host";
            walk.reject_at(&[place[0], place[1], "ports", &index.to_string(), "hostPort"], message);
        }
    }
}

pub(super) fn probes(walk: &mut Walk<'_>, container: &Fields, place: [&str; 2], are_forbidden: bool) {
    for key in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
        let Some(probe) = object(container, key) else { continue };
        if are_forbidden {
            let message = "may not be set for init containers without restartPolicy: Always";
            walk.reject_at(&[place[0], place[1], key], message);
            continue;
        }
        let threshold = number(probe, "successThreshold");
        match key {
            "livenessProbe" | "startupProbe" if threshold.is_some_and(|threshold| threshold > 1) => {
                walk.reject_at(&[place[0], place[1], key, "successThreshold"], "must be 1");
            }
            "readinessProbe" if is_set(probe, "terminationGracePeriodSeconds") => {
                let message = "must not be set for readinessProbes";
                walk.reject_at(&[place[0], place[1], key, "terminationGracePeriodSeconds"], message);
            }
            _ => {}
        }
    }
}

pub(super) fn mount(walk: &mut Walk<'_>, map: &Fields) {
    if !text(map, "subPath").is_empty() && !text(map, "subPathExpr").is_empty() {
        walk.reject_at(&["subPathExpr"], "may not be specified together with subPath");
    }
    if matches!(text(map, "recursiveReadOnly"), "IfPossible" | "Enabled") && flag(map, "readOnly") != Some(true) {
        walk.reject_at(&["recursiveReadOnly"], "may only be specified when readOnly is true");
    }
}

pub(super) fn variable(walk: &mut Walk<'_>, map: &Fields) {
    if is_set(map, "valueFrom") && !text(map, "value").is_empty() {
        walk.reject_at(&["valueFrom"], "may not be specified when value is not empty");
    }
}

pub(super) fn field_selector(walk: &mut Walk<'_>, map: &Fields) {
    const ENVIRONMENT: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    const VOLUME: [&str; 5] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.labels",
        "metadata.annotations",
        "metadata.uid",
    ];
    let version = text(map, "apiVersion");
    if !version.is_empty() && version != "v1" {
        walk.reject_at(&["apiVersion"], "must be v1");
        return;
    }
    let path = text(map, "fieldPath");
    let subscript = path.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    let allowed = if walk.is_below("env") {
        &ENVIRONMENT[..]
    } else {
        &VOLUME[..]
    };
    match subscript {
        Some(("metadata.annotations", key)) => {
            if let Some(problem) = forms::problem("qualified", &key.to_lowercase()) {
                walk.reject_at(&["fieldPath"], problem);
            }
        }
        Some(("metadata.labels", key)) => {
            if let Some(problem) = forms::problem("qualified", key) {
                walk.reject_at(&["fieldPath"], problem);
            }
        }
        Some(_) => walk.reject_at(&["fieldPath"], "does not support a subscript"),
        // An old name of spec.nodeName.
        None if path == "spec.host" || path.is_empty() || allowed.contains(&path) => {}
        None => walk.reject_at(
            &["fieldPath"],
            format!("{path:?} must be one of {}", allowed.join(", ")),
        ),
    }
}

pub(super) fn resource_selector(walk: &mut Walk<'_>, map: &Fields) {
    const KNOWN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    let resource = text(map, "resource");
    let name = resource
        .strip_prefix("limits.")
        .or_else(|| resource.strip_prefix("requests."));
    let is_known = name.is_some_and(|name| KNOWN.contains(&name) || name.starts_with("hugepages-"));
    if !walk.is_below("env") && text(map, "containerName").is_empty() {
        walk.reject_at(&["containerName"], "is required");
    } else if !resource.is_empty() && !is_known {
        let message = "must be limits. or requests. with cpu, memory or ephemeral-storage";
        walk.reject_at(&["resource"], message);
    }
}

pub(super) fn resources(walk: &mut Walk<'_>, map: &Fields) {
    let none = Map::new();
    let limits = object(map, "limits").unwrap_or(&none);
    let requests = object(map, "requests").unwrap_or(&none);
    for (bag, entries) in [("limits", limits), ("requests", requests)] {
        for (name, value) in entries {
            let is_bare = !name.contains('/');
            let is_standard = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
            if let Some(problem) = forms::problem("qualified", name) {
                walk.reject_at(&[bag, name], problem);
            } else if is_bare && !is_standard && !name.starts_with("hugepages-") {
                walk.reject_at(&[bag, name], "must be a standard resource for containers");
            } else if amount(value).is_some_and(|amount| amount.sign() < 0) {
                walk.reject_at(&[bag, name], "must be greater than or equal to 0");
            }
        }
    }
    // The API server rounds to thousandths first.
    let rounded = |value: &Value| amount(value).and_then(Quantity::milli);
    for (name, request) in requests {
        let may_exceed = (!name.contains('/') || name.contains("kubernetes.io/")) && !name.starts_with("hugepages-");
        let Some(limit) = limits.get(name) else {
            if !may_exceed {
                walk.reject_at(&["limits"], format!("must have {name}, which cannot be overcommitted"));
            }
            continue;
        };
        let (Some(request), Some(limit)) = (rounded(request), rounded(limit)) else {
            continue;
        };
        if !may_exceed && request != limit {
            walk.reject_at(&["requests", name], format!("must be equal to the limit of {name}"));
        } else if request > limit {
            walk.reject_at(
                &["requests", name],
                format!("must be less than or equal to the limit of {name}"),
            );
        }
    }
}

pub(super) fn security(walk: &mut Walk<'_>, map: &Fields) {
    if flag(map, "allowPrivilegeEscalation") != Some(false) {
        return;
    }
    if flag(map, "privileged") == Some(true) {
        walk.reject("cannot set allowPrivilegeEscalation to false and privileged to true");
    }
    let adds = object(map, "capabilities").is_some_and(|own| list(own, "add").iter().any(|one| one == "CAP_SYS_ADMIN"));
    if adds {
        walk.reject("cannot set allowPrivilegeEscalation to false and add the capability CAP_SYS_ADMIN");
    }
}

pub(super) fn profile(walk: &mut Walk<'_>, map: &Fields) {
    let has_file = is_set(map, "localhostProfile");
    if (text(map, "type") == "Localhost") != has_file && !text(map, "type").is_empty() {
        let message = "must be set if and only if the type is Localhost";
        walk.reject_at(&["localhostProfile"], message);
    }
}
