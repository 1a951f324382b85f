//! Checks that need several fields, one function for each type, as `pkg/apis/*/validation` of Kubernetes 1.36 has them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::forms::{self, is_address, network};
use super::walk::{Walk, is_empty, labels, whole};
use crate::object::quantity;

type Fields = Map<String, Value>;

/// Most bytes of a ConfigMap's or Secret's data, and of all annotations of an object.
const MOST_DATA: usize = 1 << 20;
const MOST_ANNOTATIONS: usize = 256 << 10;
const RBAC: &str = "rbac.authorization.k8s.io";

/// Checks an object of a type.
pub(super) fn check(walk: &mut Walk<'_>, name: &str, map: &Fields) {
    match name {
        "ClusterRole" => cluster_role(walk, map),
        "ClusterRoleBinding" => cluster_role_binding(walk, map),
        "ConfigMap" => config_map(walk, map),
        "DeploymentSpec" => deployment(walk, map),
        "DeploymentStrategy" => strategy(walk, map),
        "EnvVar" => variable(walk, map),
        "IPBlock" => block(walk, map),
        "LabelSelectorRequirement" => label_requirement(walk, map),
        "ObjectMeta" => metadata(walk, map),
        "NetworkPolicyPeer" => peer(walk, map),
        "NetworkPolicyPort" => policy_port(walk, map),
        "NodeSelectorRequirement" => node_requirement(walk, map),
        "ObjectFieldSelector" => field_selector(walk, map),
        "PodDisruptionBudgetSpec" => budget(walk, map),
        "PodSpec" => pod(walk, map),
        "PolicyRule" => policy_rule(walk, map),
        "PriorityClass" => priority_class(walk, map),
        "ResourceFieldSelector" => resource_selector(walk, map),
        "ResourceRequirements" => resources(walk, map),
        "RollingUpdateDeployment" => rolling_update(walk, map),
        "SeccompProfile" | "AppArmorProfile" => profile(walk, map),
        "Secret" => secret(walk, map),
        "SecurityContext" => security(walk, map),
        "ServiceSpec" => service(walk, map),
        "Subject" => subject(walk, map),
        "Toleration" => toleration(walk, map),
        "TopologySpreadConstraint" => spread(walk, map),
        "Volume" => volume(walk, map),
        "VolumeMount" => mount(walk, map),
        "VolumeProjection" => projection(walk, map),
        _ => {}
    }
}

fn text<'v>(map: &'v Fields, key: &str) -> &'v str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(map: &'v Fields, key: &str) -> &'v [Value] {
    map.get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn maps<'v>(map: &'v Fields, key: &str) -> impl Iterator<Item = (usize, &'v Fields)> {
    let items = list(map, key).iter().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_object()?)))
}

fn object<'v>(map: &'v Fields, key: &str) -> Option<&'v Fields> {
    map.get(key).and_then(Value::as_object)
}

fn number(map: &Fields, key: &str) -> Option<i64> {
    map.get(key).and_then(Value::as_number).and_then(whole)
}

fn flag(map: &Fields, key: &str) -> Option<bool> {
    map.get(key).and_then(Value::as_bool)
}

fn is_set(map: &Fields, key: &str) -> bool {
    map.get(key).is_some_and(|value| !value.is_null())
}

/// A quantity in billionths. `None` if it is none, or too large to compare.
pub(super) fn amount(value: &Value) -> Option<i128> {
    let given = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => olmkit_go::json::number(number),
        _ => return None,
    };
    quantity::check(&given).ok()?;
    let (sign, rest) = match given.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, given.strip_prefix('+').unwrap_or(&given)),
    };
    let split = rest
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(rest.len());
    let (digits, suffix) = rest.split_at(split);
    scaled(digits, suffix).map(|value| sign * value)
}

fn scaled(digits: &str, suffix: &str) -> Option<i128> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{whole}{fraction}");
    let mantissa: i128 = if all.is_empty() { 0 } else { all.parse().ok()? };
    let places = u32::try_from(fraction.len()).ok()?;
    let exponent: i32 = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        binary if BINARY.contains(&binary) => {
            let power = BINARY.iter().position(|known| *known == binary)? + 1;
            let value = mantissa
                .checked_mul(1i128 << (10 * power))?
                .checked_mul(1_000_000_000)?;
            return value.checked_div(10i128.checked_pow(places)?);
        }
        scientific => scientific.get(1..)?.parse().ok()?,
    };
    let shift = exponent.checked_add(9)?.checked_sub(i32::try_from(places).ok()?)?;
    let power = 10i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 {
        mantissa.checked_mul(power)
    } else {
        // The API server rounds up.
        Some(mantissa / power + i128::from(mantissa % power != 0))
    }
}

fn config_map(walk: &mut Walk<'_>, map: &Fields) {
    let mut size = 0;
    for bag in ["data", "binaryData"] {
        for (key, value) in object(map, bag).into_iter().flatten() {
            let length = value.as_str().map_or(0, str::len);
            size += if bag == "data" { length } else { length / 4 * 3 };
            if let Some(problem) = forms::problem("configkey", key) {
                walk.reject_at(&[bag, key], problem);
            } else if bag == "data" && object(map, "binaryData").is_some_and(|other| other.contains_key(key)) {
                walk.reject_at(&[bag, key], "must not be in binaryData too");
            }
        }
    }
    if size > MOST_DATA + 4 {
        walk.reject(format!("the data must not exceed {MOST_DATA} bytes"));
    }
}

fn secret(walk: &mut Walk<'_>, map: &Fields) {
    let mut keys = HashSet::new();
    for bag in ["data", "stringData"] {
        for key in object(map, bag).into_iter().flatten().map(|(key, _)| key) {
            keys.insert(key.as_str());
            if let Some(problem) = forms::problem("configkey", key) {
                walk.reject_at(&[bag, key], problem);
            }
        }
    }
    let needed: &[&str] = match text(map, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !keys.contains("username") => &["password"],
        "kubernetes.io/service-account-token" => {
            let account = map
                .get("metadata")
                .and_then(|metadata| metadata.get("annotations"))
                .and_then(|annotations| annotations.get("kubernetes.io/service-account.name"));
            if is_empty(account) {
                walk.reject_at(&["type"], "needs the annotation kubernetes.io/service-account.name");
            }
            &[]
        }
        _ => &[],
    };
    for key in needed.iter().filter(|key| !keys.contains(**key)) {
        walk.reject_at(&["data"], format!("{key} is required for a Secret of this type"));
    }
}

fn cluster_role(walk: &mut Walk<'_>, map: &Fields) {
    if object(map, "aggregationRule").is_some_and(|rule| list(rule, "clusterRoleSelectors").is_empty()) {
        walk.reject_at(
            &["aggregationRule", "clusterRoleSelectors"],
            "must have at least one item",
        );
    }
}

fn policy_rule(walk: &mut Walk<'_>, map: &Fields) {
    if list(map, "verbs").is_empty() {
        walk.reject_at(&["verbs"], "must contain at least one value");
    }
    let is_empty = |key: &str| list(map, key).is_empty();
    if !is_empty("nonResourceURLs") {
        if walk.root == "Role" {
            walk.reject_at(
                &["nonResourceURLs"],
                "namespaced rules cannot apply to non-resource URLs",
            );
        } else if !["apiGroups", "resources", "resourceNames"].into_iter().all(is_empty) {
            let message = "rules cannot apply to both regular resources and non-resource URLs";
            walk.reject_at(&["nonResourceURLs"], message);
        }
        return;
    }
    for (key, what) in [("apiGroups", "API group"), ("resources", "resource")] {
        if is_empty(key) {
            walk.reject_at(&[key], format!("resource rules must supply at least one {what}"));
        }
    }
}

fn cluster_role_binding(walk: &mut Walk<'_>, map: &Fields) {
    if object(map, "roleRef").is_some_and(|role| text(role, "kind") == "Role") {
        walk.reject_at(&["roleRef", "kind"], "must be ClusterRole");
    }
}

fn subject(walk: &mut Walk<'_>, map: &Fields) {
    let (group, name) = (text(map, "apiGroup"), text(map, "name"));
    match text(map, "kind") {
        "ServiceAccount" => {
            if let Some(problem) = forms::problem("subdomain", name).filter(|_| !name.is_empty()) {
                walk.reject_at(&["name"], problem);
            }
            if !group.is_empty() {
                walk.reject_at(&["apiGroup"], "must be empty for a ServiceAccount");
            }
            if walk.root == "ClusterRoleBinding" && text(map, "namespace").is_empty() {
                walk.reject_at(&["namespace"], "is required for a ServiceAccount");
            }
        }
        "User" | "Group" if !group.is_empty() && group != RBAC => {
            walk.reject_at(&["apiGroup"], format!("must be {RBAC}"));
        }
        _ => {}
    }
}

fn priority_class(walk: &mut Walk<'_>, map: &Fields) {
    let name = map
        .get("metadata")
        .and_then(|metadata| metadata.get("name"))
        .and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if name.starts_with("system-") {
        if !matches!(name, "system-cluster-critical" | "system-node-critical") {
            walk.reject_at(&["metadata", "name"], "names with the prefix system- are reserved");
        }
    } else if number(map, "value").is_some_and(|value| value > 1_000_000_000) {
        walk.reject_at(&["value"], "must be at most 1000000000");
    }
}

fn budget(walk: &mut Walk<'_>, map: &Fields) {
    if is_set(map, "minAvailable") && is_set(map, "maxUnavailable") {
        walk.reject("minAvailable and maxUnavailable cannot be both set");
    }
}

fn label_requirement(walk: &mut Walk<'_>, map: &Fields) {
    requirement(walk, map, false);
    for (index, value) in list(map, "values").iter().enumerate() {
        if let Some(problem) = forms::problem("labelvalue", value.as_str().unwrap_or_default()) {
            walk.reject_at(&["values", &index.to_string()], problem);
        }
    }
}

fn node_requirement(walk: &mut Walk<'_>, map: &Fields) {
    if walk.is_below("matchFields") {
        if text(map, "key") != "metadata.name" {
            walk.reject_at(&["key"], "is not a valid field selector key");
        }
        if !matches!(text(map, "operator"), "In" | "NotIn") {
            walk.reject_at(&["operator"], "is not a valid selector operator");
        } else if list(map, "values").len() != 1 {
            walk.reject_at(&["values"], "must be only one value");
        }
        return;
    }
    requirement(walk, map, true);
    if walk.is_below("requiredDuringSchedulingIgnoredDuringExecution") {
        for (index, value) in list(map, "values").iter().enumerate() {
            if let Some(problem) = forms::problem("labelvalue", value.as_str().unwrap_or_default()) {
                walk.reject_at(&["values", &index.to_string()], problem);
            }
        }
    }
}

fn requirement(walk: &mut Walk<'_>, map: &Fields, of_node: bool) {
    let values = list(map, "values").len();
    match text(map, "operator") {
        "In" | "NotIn" if values == 0 => walk.reject_at(&["values"], "is required for the operators In and NotIn"),
        "Exists" | "DoesNotExist" if values > 0 => {
            walk.reject_at(&["values"], "is not allowed for the operators Exists and DoesNotExist");
        }
        "Gt" | "Lt" if of_node && values != 1 => {
            walk.reject_at(&["values"], "must have one item for the operators Lt and Gt");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if of_node => {}
        _ => walk.reject_at(&["operator"], "is not a valid selector operator"),
    }
    if let Some(problem) = forms::problem("qualified", text(map, "key")) {
        walk.reject_at(&["key"], problem);
    }
}

fn peer(walk: &mut Walk<'_>, map: &Fields) {
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

fn policy_port(walk: &mut Walk<'_>, map: &Fields) {
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

fn block(walk: &mut Walk<'_>, map: &Fields) {
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

fn deployment(walk: &mut Walk<'_>, map: &Fields) {
    if let Some(selector) = object(map, "selector") {
        let labels = object(selector, "matchLabels").is_none_or(Map::is_empty);
        if labels && list(selector, "matchExpressions").is_empty() {
            walk.reject_at(&["selector"], "must not be empty");
        } else {
            selects(walk, map, selector);
        }
    }
    let deadline = map
        .get("progressDeadlineSeconds")
        .map_or(Some(600), |_| number(map, "progressDeadlineSeconds"));
    let ready = number(map, "minReadySeconds").unwrap_or_default();
    if deadline.is_some_and(|deadline| deadline >= 0 && deadline <= ready) {
        walk.reject_at(&["progressDeadlineSeconds"], "must be greater than minReadySeconds");
    }
}

/// Whether the selector's labels are those of the pods.
fn selects(walk: &mut Walk<'_>, map: &Fields, selector: &Fields) {
    let none = Map::new();
    let template = object(map, "template").and_then(|template| object(template, "metadata"));
    let own = template
        .and_then(|metadata| object(metadata, "labels"))
        .unwrap_or(&none);
    let missing = object(selector, "matchLabels")
        .into_iter()
        .flatten()
        // The schema drops a null.
        .find(|(key, value)| !value.is_null() && own.get(*key).and_then(Value::as_str) != value.as_str());
    if let Some((key, _)) = missing {
        walk.reject_at(&["selector", "matchLabels", key], super::UNSELECTED);
        return;
    }
    for (index, expression) in maps(selector, "matchExpressions") {
        let value = own.get(text(expression, "key")).and_then(Value::as_str);
        let listed = value.is_some_and(|value| list(expression, "values").iter().any(|one| one == value));
        let matches = match text(expression, "operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => true,
        };
        if !matches {
            let message = "must select the labels of the pod template";
            walk.reject_at(&["selector", "matchExpressions", &index.to_string()], message);
        }
    }
}

fn strategy(walk: &mut Walk<'_>, map: &Fields) {
    if text(map, "type") == "Recreate" && is_set(map, "rollingUpdate") {
        walk.reject_at(&["rollingUpdate"], "may not be specified when the type is Recreate");
    }
}

fn rolling_update(walk: &mut Walk<'_>, map: &Fields) {
    let is_zero = |key: &str| match map.get(key) {
        Some(Value::Number(number)) => whole(number) == Some(0),
        Some(Value::String(text)) => text
            .strip_suffix('%')
            .is_some_and(|digits| digits.parse::<u32>() == Ok(0)),
        _ => false,
    };
    if is_zero("maxUnavailable") && is_zero("maxSurge") {
        walk.reject_at(&["maxUnavailable"], "may not be 0 when maxSurge is 0");
    }
}

fn metadata(walk: &mut Walk<'_>, map: &Fields) {
    if let Some((key, problem)) = object(map, "labels").and_then(labels) {
        walk.reject_at(&["labels", &key.unwrap_or_default()], problem);
    }
    let mut size = 0;
    for (key, value) in object(map, "annotations").into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(problem) = forms::problem("qualified", &key.to_lowercase()) {
            walk.reject_at(&["annotations", key], problem);
        }
    }
    if size > MOST_ANNOTATIONS {
        walk.reject_at(&["annotations"], format!("must not exceed {MOST_ANNOTATIONS} bytes"));
    }
    // The API server ignores the rest in the template of a Deployment.
    if walk.is_below("template") {
        return;
    }
    for (index, finalizer) in list(map, "finalizers").iter().enumerate() {
        if let Some(problem) = forms::problem("qualified", finalizer.as_str().unwrap_or_default()) {
            walk.reject_at(&["finalizers", &index.to_string()], problem);
        }
    }
    for (index, owner) in maps(map, "ownerReferences") {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                walk.reject_at(&["ownerReferences", &index.to_string(), key], "must not be empty");
            }
        }
    }
}

fn volume(walk: &mut Walk<'_>, map: &Fields) {
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

fn projection(walk: &mut Walk<'_>, map: &Fields) {
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

fn mount(walk: &mut Walk<'_>, map: &Fields) {
    if !text(map, "subPath").is_empty() && !text(map, "subPathExpr").is_empty() {
        walk.reject_at(&["subPathExpr"], "may not be specified together with subPath");
    }
    if matches!(text(map, "recursiveReadOnly"), "IfPossible" | "Enabled") && flag(map, "readOnly") != Some(true) {
        walk.reject_at(&["recursiveReadOnly"], "may only be specified when readOnly is true");
    }
}

fn variable(walk: &mut Walk<'_>, map: &Fields) {
    if is_set(map, "valueFrom") && !text(map, "value").is_empty() {
        walk.reject_at(&["valueFrom"], "may not be specified when value is not empty");
    }
}

fn field_selector(walk: &mut Walk<'_>, map: &Fields) {
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

fn resource_selector(walk: &mut Walk<'_>, map: &Fields) {
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

fn resources(walk: &mut Walk<'_>, map: &Fields) {
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
            } else if amount(value).is_some_and(|amount| amount < 0) {
                walk.reject_at(&[bag, name], "must be greater than or equal to 0");
            }
        }
    }
    // The API server rounds to thousandths first.
    let rounded = |value: &Value| {
        amount(value).map(|amount| amount.div_euclid(1_000_000) + i128::from(amount.rem_euclid(1_000_000) != 0))
    };
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

fn security(walk: &mut Walk<'_>, map: &Fields) {
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

fn profile(walk: &mut Walk<'_>, map: &Fields) {
    let has_file = is_set(map, "localhostProfile");
    if (text(map, "type") == "Localhost") != has_file && !text(map, "type").is_empty() {
        let message = "must be set if and only if the type is Localhost";
        walk.reject_at(&["localhostProfile"], message);
    }
}

fn toleration(walk: &mut Walk<'_>, map: &Fields) {
    let (key, operator, value) = (text(map, "key"), text(map, "operator"), text(map, "value"));
    if key.is_empty() && operator != "Exists" {
        walk.reject_at(&["operator"], "must be Exists when the key is empty");
    }
    if is_set(map, "tolerationSeconds") && text(map, "effect") != "NoExecute" {
        walk.reject_at(&["effect"], "must be NoExecute when tolerationSeconds is set");
    }
    match operator {
        "" | "Equal" => {
            if let Some(problem) = forms::problem("labelvalue", value) {
                walk.reject_at(&["value"], problem);
            }
        }
        "Exists" if !value.is_empty() => walk.reject_at(&["value"], "must be empty when the operator is Exists"),
        _ => {}
    }
}

fn spread(walk: &mut Walk<'_>, map: &Fields) {
    if is_set(map, "minDomains") && text(map, "whenUnsatisfiable") != "DoNotSchedule" {
        walk.reject_at(
            &["minDomains"],
            "can only be set when whenUnsatisfiable is DoNotSchedule",
        );
    }
}

fn pod(walk: &mut Walk<'_>, map: &Fields) {
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

fn mounts(walk: &mut Walk<'_>, container: &Fields, volumes: &HashSet<&str>, place: [&str; 2]) {
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

fn ports(walk: &mut Walk<'_>, container: &Fields, place: [&str; 2], is_on_host: bool) {
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

fn own_host_ports<'v>(
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

fn probes(walk: &mut Walk<'_>, container: &Fields, place: [&str; 2], are_forbidden: bool) {
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

fn service(walk: &mut Walk<'_>, map: &Fields) {
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
