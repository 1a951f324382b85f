//! Pods and their volumes.

use std::collections::HashSet;

use serde_json::Map;

use super::container::{mounts, own_host_ports, ports, probes};
use super::{Fields, flag, is_set, list, maps, object, text};
use crate::admission::forms::is_address;
use crate::admission::walk::Walk;

pub(super) fn pod(walk: &mut Walk<'_>, map: &Fields) {
    let volumes: HashSet<&str> = maps(map, "volumes").map(|(_, volume)| text(volume, "name")).collect();
    let regular: HashSet<&str> = maps(map, "containers")
        .map(|(_, container)| text(container, "name"))
        .collect();
    let is_on_host = flag(map, "hostNetwork") == Some(true);
    let mut host_ports = HashSet::new();
    for bag in ["containers", "initContainers"] {
        for (index, own) in maps(map, bag) {
            let place = index.to_string();
            let place = [bag, place.as_str()];
            mounts(walk, own, &volumes, place);
            ports(walk, own, place, is_on_host && bag == "containers");
            if bag == "containers" {
                own_host_ports(walk, own, place, &mut host_ports);
            } else if regular.contains(text(own, "name")) && !text(own, "name").is_empty() {
                walk.reject_at(&[bag, place[1], "name"], "repeats the name of another container");
            }
            probes(
                walk,
                own,
                place,
                bag == "initContainers" && text(own, "restartPolicy") != "Always",
            );
        }
    }
    dns(walk, map);
    for (index, alias) in maps(map, "hostAliases") {
        if !is_address(text(alias, "ip")) {
            walk.reject_at(&["hostAliases", &index.to_string(), "ip"], "must be a valid IP address");
        }
    }
    if flag(map, "shareProcessNamespace") == Some(true) && flag(map, "hostPID") == Some(true) {
        walk.reject_at(&["shareProcessNamespace"], "cannot be enabled together with hostPID");
    }
    if flag(map, "hostUsers") == Some(false) {
        for key in ["hostPID", "hostIPC"] {
            if flag(map, key) == Some(true) {
                walk.reject_at(&[key], "is not allowed when hostUsers is false");
            }
        }
    }
}

fn dns(walk: &mut Walk<'_>, map: &Fields) {
    let none = Map::new();
    let config = object(map, "dnsConfig").unwrap_or(&none);
    let servers = list(config, "nameservers");
    if text(map, "dnsPolicy") == "None" && servers.is_empty() {
        walk.reject_at(
            &["dnsConfig", "nameservers"],
            "must have an item when dnsPolicy is None",
        );
    }
    if servers.len() > 3 {
        walk.reject_at(&["dnsConfig", "nameservers"], "must not have more than 3 items");
    }
    for (index, server) in servers.iter().enumerate() {
        if server.as_str().is_some_and(|server| !is_address(server)) {
            let message = "must be a valid IP address";
            walk.reject_at(&["dnsConfig", "nameservers", &index.to_string()], message);
        }
    }
}

pub(super) fn volume(walk: &mut Walk<'_>, map: &Fields) {
    const SOURCES: [&str; 30] = [
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "hostPath",
        "image",
        "iscsi",
        "nfs",
        "persistentVolumeClaim",
        "photonPersistentDisk",
        "portworxVolume",
        "projected",
        "quobyte",
        "rbd",
        "scaleIO",
        "secret",
        "storageos",
        "vsphereVolume",
    ];
    if SOURCES.into_iter().filter(|key| is_set(map, key)).count() > 1 {
        walk.reject("may not specify more than one volume type");
    }
}

pub(super) fn projection(walk: &mut Walk<'_>, map: &Fields) {
    const SOURCES: [&str; 6] = [
        "secret",
        "configMap",
        "downwardAPI",
        "serviceAccountToken",
        "clusterTrustBundle",
        "podCertificate",
    ];
    if SOURCES.into_iter().filter(|key| is_set(map, key)).count() > 1 {
        walk.reject("may not specify more than one volume type in one source");
    }
}
