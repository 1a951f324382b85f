//! Services and NetworkPolicies.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Fields, is_set, list, maps, number, text};
use crate::admission::forms::{self, is_address, network};
use crate::admission::walk::{Walk, whole};

pub(super) fn peer(walk: &mut Walk<'_>, map: &Fields) {
    let set = ["podSelector", "namespaceSelector", "ipBlock"]
        .into_iter()
        .filter(|key| is_set(map, key))
        .count();
    if set == 0 {
        walk.reject("must specify a peer");
    } else if set > 1 && is_set(map, "ipBlock") {
        walk.reject("may not specify both ipBlock and another peer");
    }
}

pub(super) fn policy_port(walk: &mut Walk<'_>, map: &Fields) {
    let end = number(map, "endPort");
    match map.get("port") {
        Some(Value::String(name)) => {
            if let Some(problem) = forms::problem("portname", name) {
                walk.reject_at(&["port"], problem);
            } else if end.is_some() {
                walk.reject_at(&["endPort"], "may not be specified when port is not a number");
            }
        }
        Some(Value::Number(port)) => {
            let port = whole(port).unwrap_or_default();
            if !(1..=65535).contains(&port) {
                walk.reject_at(&["port"], "must be between 1 and 65535, inclusive");
            }
            if end.is_some_and(|end| end < port || end > 65535) {
                walk.reject_at(&["endPort"], "must be between port and 65535");
            }
        }
        _ if end.is_some() => walk.reject_at(&["endPort"], "may not be specified when port is not specified"),
        _ => {}
    }
}

pub(super) fn block(walk: &mut Walk<'_>, map: &Fields) {
    let outer = network(text(map, "cidr"));
    for (index, except) in list(map, "except").iter().enumerate() {
        let except = except.as_str().unwrap_or_default();
        let index = index.to_string();
        if let Some(problem) = forms::problem("cidr", except) {
            walk.reject_at(&["except", &index], problem);
        } else if let (Some((_, outer)), Some((_, inner))) = (outer, network(except))
            && inner <= outer
        {
            walk.reject_at(&["except", &index], "must be a strict subset of cidr");
        }
    }
}

pub(super) fn service(walk: &mut Walk<'_>, map: &Fields) {
    let kind = Some(text(map, "type"))
        .filter(|kind| !kind.is_empty())
        .unwrap_or("ClusterIP");
    let address = text(map, "clusterIP");
    let all = list(map, "ports").len();
    if all == 0 && address != "None" && kind != "ExternalName" {
        walk.reject_at(&["ports"], "is required");
    }
    if address == "None" && matches!(kind, "LoadBalancer" | "NodePort") {
        walk.reject_at(&["clusterIP"], format!("may not be None for {kind} services"));
    } else if !address.is_empty() && address != "None" && !is_address(address) {
        walk.reject_at(&["clusterIP"], "must be None or a valid IP address");
    }
    if kind == "ExternalName" {
        let name = text(map, "externalName");
        if let Some(problem) = forms::problem("subdomain", name.strip_suffix('.').unwrap_or(name)) {
            walk.reject_at(&["externalName"], problem);
        }
        if !address.is_empty() {
            walk.reject_at(&["clusterIP"], "may not be set for ExternalName services");
        }
    }
    service_ports(walk, map, kind, all);
    for (index, outer) in list(map, "externalIPs").iter().enumerate() {
        if outer.as_str().is_some_and(|outer| !is_address(outer)) {
            walk.reject_at(&["externalIPs", &index.to_string()], "must be a valid IP address");
        }
    }
    let is_outside = matches!(kind, "LoadBalancer" | "NodePort") || !list(map, "externalIPs").is_empty();
    let policy = text(map, "externalTrafficPolicy");
    if !policy.is_empty() && (!is_outside || !matches!(policy, "Cluster" | "Local")) {
        let message = "must be Cluster or Local, for a service that is accessible from outside";
        walk.reject_at(&["externalTrafficPolicy"], message);
    }
    if kind != "LoadBalancer" {
        for key in [
            "allocateLoadBalancerNodePorts",
            "loadBalancerClass",
            "loadBalancerSourceRanges",
        ] {
            let value = map.get(key);
            if is_set(map, key) && !value.is_some_and(|value| value.as_array().is_some_and(Vec::is_empty)) {
                walk.reject_at(&[key], "may only be used when the type is LoadBalancer");
            }
        }
    }
}

fn service_ports(walk: &mut Walk<'_>, map: &Fields, kind: &str, all: usize) {
    let mut names = HashSet::new();
    let mut seen: HashMap<(&str, i64), usize> = HashMap::new();
    for (index, port) in maps(map, "ports") {
        let place = index.to_string();
        let name = text(port, "name");
        if name.is_empty() && all > 1 {
            walk.reject_at(&["ports", &place, "name"], "is required if there are several ports");
        } else if !name.is_empty() && !names.insert(name) {
            walk.reject_at(&["ports", &place, "name"], "repeats the name of an earlier port");
        }
        let protocol = Some(text(port, "protocol"))
            .filter(|protocol| !protocol.is_empty())
            .unwrap_or("TCP");
        if let Some(own) = number(port, "port")
            && seen.insert((protocol, own), index).is_some()
        {
            walk.reject_at(&["ports", &place], "repeats an earlier port");
        }
        if kind == "ClusterIP" && number(port, "nodePort").is_some_and(|port| port != 0) {
            walk.reject_at(
                &["ports", &place, "nodePort"],
                "may not be used when the type is ClusterIP",
            );
        }
    }
}
