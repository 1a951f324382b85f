//! Assigns objects to the files of `config/`.

use olmkit_base::object::SetAt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Error, Files, PERMISSIONS_ANNOTATION, Project, webhooks};
use crate::rbac::{self, Account, Grant, Labels, Scope};

impl Project {
    pub(crate) fn labels(&self) -> Labels {
        Labels::from([
            ("app.kubernetes.io/name".to_owned(), self.name.clone()),
            ("app.kubernetes.io/managed-by".to_owned(), "olmkit".to_owned()),
        ])
    }

    pub(crate) fn account_name(&self) -> String {
        format!("{}-controller-manager", self.name)
    }

    /// The labels of the operator's pods. They include its name, so two operators in a namespace never share pods.
    pub(crate) fn selector(&self) -> Value {
        json!({"app.kubernetes.io/name": self.name, "control-plane": "controller-manager"})
    }

    fn account<'a>(&'a self, name: &'a str) -> Account<'a> {
        Account {
            name,
            namespace: &self.namespace,
        }
    }
}

pub(super) fn render(project: &Project) -> Result<Files, Error> {
    let mut files = Files::default();
    let mut directories = Vec::new();
    if !project.apis.is_empty() {
        definitions(project, &mut files)?;
        samples(project, &mut files)?;
        directories.push("../crd");
    }
    permissions(project, &mut files)?;
    manager(project, &mut files)?;
    if project.scorecard {
        files.add("scorecard/config.yaml", &[scorecard()])?;
        kustomization(&mut files, "scorecard", &["config.yaml".to_owned()])?;
    }
    directories.extend(["../rbac", "../manager"]);
    for (directory, names) in webhooks::render(project, &mut files)? {
        kustomization(&mut files, directory, &names)?;
        directories.push(match directory {
            "webhook" => "../webhook",
            _ => "../certmanager",
        });
    }
    let mut extra = Vec::new();
    for (path, objects) in &project.extra {
        files.add(path, objects)?;
        let directory = path.parent().unwrap_or(Path::new("")).display().to_string();
        if !extra.contains(&directory) {
            extra.push(directory);
        }
    }
    for directory in &extra {
        let names: Vec<String> = project
            .extra
            .iter()
            .filter(|(path, _)| path.parent().is_some_and(|parent| parent == Path::new(directory)))
            .filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_owned()))
            .collect();
        kustomization(&mut files, directory, &names)?;
    }
    let mut resources: Vec<String> = directories.iter().map(ToString::to_string).collect();
    resources.extend(extra.iter().map(|directory| format!("../{directory}")));
    let mut default = kustomization_of(&resources);
    let patches = webhooks::patches(project);
    if !patches.is_empty() {
        default.set_at(&["patches"], Value::Array(patches));
    }
    files.add("default/kustomization.yaml", &[default])?;
    manifests(project, &mut files)?;
    Ok(files)
}

fn kustomization(files: &mut Files, directory: &str, resources: &[String]) -> Result<(), Error> {
    files.add(
        Path::new(directory).join("kustomization.yaml"),
        &[kustomization_of(resources)],
    )
}

fn kustomization_of(resources: &[String]) -> Value {
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    })
}

fn definitions(project: &Project, files: &mut Files) -> Result<(), Error> {
    let mut names = Vec::new();
    for api in &project.apis {
        let name = format!("bases/{}.yaml", api.file_stem());
        let mut definition = api.definition()?;
        if let Some(path) = &api.conversion_path {
            definition.set_at(&["spec", "conversion"], webhooks::conversion(project, path));
        }
        files.add(Path::new("crd").join(&name), &[definition])?;
        names.push(name);
    }
    names.sort();
    kustomization(files, "crd", &names)
}

fn samples(project: &Project, files: &mut Files) -> Result<(), Error> {
    let mut names = Vec::new();
    for sample in project.apis.iter().flat_map(|api| &api.samples) {
        let name = sample_file(sample, names.len());
        let name = if names.contains(&name) {
            format!("{}_{name}", names.len())
        } else {
            name
        };
        let mut labelled = sample.clone();
        if let Some(labels) = labelled.get_mut("metadata").and_then(Value::as_object_mut) {
            labels.entry("labels").or_insert_with(|| json!(project.labels()));
        }
        files.add(Path::new("samples").join(&name), &[labelled])?;
        names.push(name);
    }
    if names.is_empty() {
        return Ok(());
    }
    names.sort();
    kustomization(files, "samples", &names)
}

/// `<first part of the group>_<version>_<kind>.yaml`, as kubebuilder names samples.
fn sample_file(sample: &Value, at: usize) -> String {
    let text = |field: &str| sample.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let short = group.split('.').next().unwrap_or_default();
    match text("kind") {
        "" => format!("sample_{at}.yaml"),
        kind => format!("{short}_{version}_{}.yaml", kind.to_lowercase()),
    }
}

fn permissions(project: &Project, files: &mut Files) -> Result<(), Error> {
    let (name, labels) = (&project.name, project.labels());
    let account_name = project.account_name();
    let account = project.account(&account_name);
    let rules = |scope: Scope| rbac::rules(&project.grants, |own| own == scope);
    let mut written: Vec<String> = Vec::new();
    let mut add = |file: String, object: Value| -> Result<(), Error> {
        files.add(Path::new("rbac").join(&file), &[object])?;
        written.push(file);
        Ok(())
    };
    add(
        "service_account.yaml".into(),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace, "labels": labels},
        }),
    )?;
    let watched = rules(Scope::Watched);
    if !watched.is_empty() {
        let (role, binding) = (format!("{name}-manager-role"), format!("{name}-manager-rolebinding"));
        let (role, binding) = if project.namespaced {
            let namespace = &project.namespace;
            (
                rbac::role(&role, namespace, &labels, &watched),
                rbac::binding(&binding, namespace, &labels, &role, account),
            )
        } else {
            let mut binding = rbac::cluster_binding(&binding, &labels, &role, account);
            binding.set_at(
                &["metadata", "annotations"],
                json!({PERMISSIONS_ANNOTATION: "namespaced"}),
            );
            (rbac::cluster_role(&role, &labels, &watched), binding)
        };
        add("role.yaml".into(), role)?;
        add("role_binding.yaml".into(), binding)?;
    }
    let cluster = rules(Scope::Cluster);
    if !cluster.is_empty() {
        let role = format!("{name}-cluster-role");
        add("cluster_role.yaml".into(), rbac::cluster_role(&role, &labels, &cluster))?;
        let binding = rbac::cluster_binding(&format!("{name}-cluster-rolebinding"), &labels, &role, account);
        add("cluster_role_binding.yaml".into(), binding)?;
    }
    let own = rules(Scope::Own);
    if !own.is_empty() {
        let role = format!("{name}-leader-election-role");
        add(
            "leader_election_role.yaml".into(),
            rbac::role(&role, &project.namespace, &labels, &own),
        )?;
        let binding = format!("{name}-leader-election-rolebinding");
        let mut binding = rbac::binding(&binding, &project.namespace, &labels, &role, account);
        binding.set_at(
            &["metadata", "annotations"],
            json!({PERMISSIONS_ANNOTATION: "own-namespace"}),
        );
        add("leader_election_role_binding.yaml".into(), binding)?;
    }
    for api in &project.apis {
        let names = &api.crd.spec.names;
        let singular = names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase());
        let scales = api.crd.spec.versions.iter().any(|version| {
            let subresources = version.subresources.as_ref();
            subresources.is_some_and(|subresources| subresources.scale.is_some())
        });
        for (who, rules) in rbac::user_roles(&api.crd.spec.group, &names.plural, scales) {
            let mut labels = labels.clone();
            if project.aggregated {
                let role = who.trim_end_matches("or").trim_end_matches("er");
                labels.insert(
                    format!("rbac.authorization.k8s.io/aggregate-to-{role}"),
                    "true".to_owned(),
                );
            }
            let role = rbac::cluster_role(&format!("{name}-{singular}-{who}-role"), &labels, &rules);
            add(format!("{singular}_{who}_role.yaml"), role)?;
        }
    }
    written.sort();
    kustomization(files, "rbac", &written)
}

fn manager(project: &Project, files: &mut Files) -> Result<(), Error> {
    let mut labels = project.labels();
    labels.insert("control-plane".into(), "controller-manager".into());
    labels.insert("pod-security.kubernetes.io/enforce".into(), "restricted".into());
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": project.namespace, "labels": labels},
    });
    files.add(
        "manager/manager.yaml",
        &[namespace, project.manager.deployment(project)],
    )?;
    kustomization(files, "manager", &["manager.yaml".to_owned()])
}

fn manifests(project: &Project, files: &mut Files) -> Result<(), Error> {
    let base = format!("bases/{}.clusterserviceversion.yaml", project.name);
    files.add(Path::new("manifests").join(&base), &[project.base()?])?;
    let mut resources = vec![base, "../default".to_owned()];
    if files.text("samples/kustomization.yaml").is_some() {
        resources.push("../samples".to_owned());
    }
    if project.scorecard {
        resources.push("../scorecard".to_owned());
    }
    kustomization(files, "manifests", &resources)
}

/// operator-sdk's default tests: one about custom resources, five about the bundle.
fn scorecard() -> Value {
    let test = |suite: &str, name: &str| {
        json!({
            "entrypoint": ["scorecard-test", name],
            "image": "quay.io/operator-framework/scorecard-test:v1.42.3",
            "labels": {"suite": suite, "test": format!("{name}-test")},
        })
    };
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "stages": [{
            "parallel": true,
            "tests": [
                test("basic", "basic-check-spec"),
                test("olm", "olm-bundle-validation"),
                test("olm", "olm-crds-have-validation"),
                test("olm", "olm-crds-have-resources"),
                test("olm", "olm-spec-descriptors"),
                test("olm", "olm-status-descriptors"),
            ],
        }],
    })
}

/// A grant table as a Markdown table, for an operator's documentation.
#[must_use]
pub fn grants_table(grants: &[Grant]) -> String {
    let mut text = String::from("| group | resource | verbs | where | what for |\n|---|---|---|---|---|\n");
    for grant in grants {
        let scope = match grant.scope {
            Scope::Watched => "watched namespaces",
            Scope::Own => "own namespace",
            Scope::Cluster => "cluster",
        };
        let group = if grant.group.is_empty() { "core" } else { &grant.group };
        text.push_str(&format!(
            "| {group} | {} | {} | {scope} | {} |\n",
            grant.resource,
            grant.verbs.join(", "),
            grant.why
        ));
    }
    text
}
