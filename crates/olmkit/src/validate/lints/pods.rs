//! POD and SEC: deployments and secrets.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items, strings};

define_rules! {
    SEC_1 = {
        id: "SEC-1",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The bundle should not contain a Secret with data.",
        why: "Users that can pull the bundle image can read it.",
        bad: "kind: Secret\nstringData: {password: hunter2}",
        good: "let the operator create the Secret",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "users that can pull an image can read its files",
            "any",
            "https://kubernetes.io/docs/concepts/security/secrets-good-practices/",
        ),
    }
    SEC_2 = {
        id: "SEC-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Containers should not receive a password or token as plain text.",
        why: "It can be read in the bundle, in the Deployment and in every pod.",
        bad: "- name: DB_PASSWORD\n  value: hunter2",
        good: "- name: DB_PASSWORD\n  valueFrom: {secretKeyRef: …}",
        since: "0.1.0",
    }
    POD_1 = {
        id: "POD-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Pods should not be privileged, run as root, or use the host's namespaces or paths.",
        why: "Such a pod can take over its node, and restricted namespaces do not admit it.",
        bad: "privileged: true",
        good: "allowPrivilegeEscalation: false",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "namespaces that enforce the standard `restricted` do not admit the pods",
            "Kubernetes 1.36, since 1.25",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    POD_2 = {
        id: "POD-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A deployment's selector should match the labels of its pods.",
        why: "The API server rejects the Deployment, so the installation fails.",
        bad: "matchLabels: {app: a}\nlabels: {app: b}",
        good: "matchLabels: {app: a}\nlabels: {app: a}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the Deployment",
            "Kubernetes 1.36, since 1.9",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    POD_3 = {
        id: "POD-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Deployments should have different names.",
        why: "Two Deployments of one name overwrite each other.",
        bad: "- name: manager, twice",
        good: "- name: manager\n- name: webhook",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "one Deployment of the name exists",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = secrets(context);
    if let Some(csv) = context.csv() {
        findings.extend(deployments(&csv));
    }
    findings
}

fn secrets(context: &Context<'_>) -> Vec<Checked> {
    let has_content = |object: &&crate::bundle::Object| {
        ["data", "stringData"].iter().any(|key| {
            object
                .value
                .get(*key)
                .and_then(Value::as_object)
                .is_some_and(|map| !map.is_empty())
        })
    };
    let secrets = context
        .bundle
        .objects
        .iter()
        .filter(|object| object.kind() == "Secret")
        .filter(has_content);
    secrets
        .map(|object| {
            let pointer = if object.value.get("data").is_some() {
                "/data"
            } else {
                "/stringData"
            };
            Checked::new(
                &SEC_1,
                "the bundle contains a Secret with data; anyone who can pull the image can read it",
            )
            .at(object, pointer)
            .hint("let the operator create the Secret when it starts")
        })
        .collect()
}

fn deployments(csv: &Csv<'_>) -> Vec<Checked> {
    let mut names = BTreeSet::new();
    let mut findings = Vec::new();
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let pointer = format!("/spec/install/spec/deployments/{at}");
        if !names.insert(field(deployment, "name")) {
            let message = format!("duplicate deployment name {:?}", field(deployment, "name"));
            findings.push(
                Checked::new(&POD_3, message)
                    .at(csv.object, &format!("{pointer}/name"))
                    .hint("rename one of them: the later one replaces the earlier"),
            );
        }
        findings.extend(selector(csv, deployment, &pointer));
        let Some(pod) = deployment.pointer("/spec/template/spec") else {
            continue;
        };
        let pod_pointer = format!("{pointer}/spec/template/spec");
        findings.extend(host_access(csv, pod, &pod_pointer));
        for list in ["initContainers", "containers"] {
            for (index, container) in items(pod, list).iter().enumerate() {
                let pointer = format!("{pod_pointer}/{list}/{index}");
                findings.extend(privileges(csv, container, &pointer));
                findings.extend(passwords(csv, container, &pointer));
            }
        }
    }
    findings
}

fn selector(csv: &Csv<'_>, deployment: &Value, pointer: &str) -> Option<Checked> {
    let wanted = deployment
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object)?;
    let labels = deployment
        .pointer("/spec/template/metadata/labels")
        .and_then(Value::as_object);
    let (key, value) = wanted
        .iter()
        .find(|(key, value)| labels.and_then(|labels| labels.get(*key)) != Some(value))?;
    let message = format!(
        "the selector requires label {key}={}, which the pods do not have",
        value.as_str().unwrap_or_default()
    );
    let pointer = format!("{pointer}/spec/selector/matchLabels");
    Some(
        Checked::new(&POD_2, message)
            .at(csv.object, &pointer)
            .hint("add the labels of the selector to the pod template"),
    )
}

fn host_access(csv: &Csv<'_>, pod: &Value, pointer: &str) -> Vec<Checked> {
    let hint = "remove it, unless the operator manages the nodes themselves";
    let mut findings = Vec::new();
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        if pod.get(key) == Some(&Value::Bool(true)) {
            findings.push(
                Checked::new(&POD_1, format!("the pod sets {key}"))
                    .at(csv.object, &format!("{pointer}/{key}"))
                    .hint(hint),
            );
        }
    }
    for (at, volume) in items(pod, "volumes").iter().enumerate() {
        if let Some(path) = volume.pointer("/hostPath/path").and_then(Value::as_str) {
            let message = format!("the pod mounts the host's {path}");
            findings.push(
                Checked::new(&POD_1, message)
                    .at(csv.object, &format!("{pointer}/volumes/{at}/hostPath"))
                    .hint(hint),
            );
        }
    }
    if pod.pointer("/securityContext/runAsUser").and_then(Value::as_i64) == Some(0) {
        let pointer = format!("{pointer}/securityContext/runAsUser");
        findings.push(
            Checked::new(&POD_1, "the pod runs as root")
                .at(csv.object, &pointer)
                .hint("set `runAsNonRoot: true`"),
        );
    }
    findings
}

fn privileges(csv: &Csv<'_>, container: &Value, pointer: &str) -> Vec<Checked> {
    let Some(context) = container.get("securityContext") else {
        return Vec::new();
    };
    let pointer = format!("{pointer}/securityContext");
    let name = field(container, "name");
    let mut findings = Vec::new();
    let mut add = |message: String, key: &str, hint: &str| {
        findings.push(
            Checked::new(&POD_1, message)
                .at(csv.object, &format!("{pointer}/{key}"))
                .hint(hint),
        );
    };
    if context.get("privileged") == Some(&Value::Bool(true)) {
        add(
            format!("container {name:?} is privileged"),
            "privileged",
            "remove it and set `allowPrivilegeEscalation: false`",
        );
    } else if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(true)) {
        add(
            format!("container {name:?} allows privilege escalation"),
            "allowPrivilegeEscalation",
            "set it to false",
        );
    }
    if context.get("runAsUser").and_then(Value::as_i64) == Some(0) {
        add(
            format!("container {name:?} runs as root"),
            "runAsUser",
            "set `runAsNonRoot: true`",
        );
    }
    if let Some(capabilities) = context.get("capabilities") {
        let strong: Vec<&str> = strings(capabilities, "add")
            .filter(|capability| matches!(*capability, "ALL" | "SYS_ADMIN" | "NET_ADMIN" | "SYS_PTRACE"))
            .collect();
        if !strong.is_empty() {
            add(
                format!("container {name:?} adds capability {}", strong.join(", ")),
                "capabilities/add",
                "remove it",
            );
        }
    }
    findings
}

fn passwords(csv: &Csv<'_>, container: &Value, pointer: &str) -> Vec<Checked> {
    let secret = |name: &str| {
        let name = name.to_uppercase();
        ["PASSWORD", "PASSWD", "SECRET_KEY", "ACCESS_KEY", "API_KEY", "_TOKEN"]
            .iter()
            .any(|word| name.ends_with(word))
    };
    let mut findings = Vec::new();
    for (at, variable) in items(container, "env").iter().enumerate() {
        let (name, value) = (field(variable, "name"), field(variable, "value"));
        // `$(OTHER)` and switches are not secrets.
        if secret(name) && !value.is_empty() && !value.starts_with("$(") && !matches!(value, "true" | "false") {
            let message = format!("environment variable {name} has a plain-text value");
            let hint = "take it from a Secret: `valueFrom: {secretKeyRef: …}`";
            findings.push(
                Checked::new(&SEC_2, message)
                    .at(csv.object, &format!("{pointer}/env/{at}/value"))
                    .hint(hint),
            );
        }
    }
    findings
}
