//! An operator that OLM has installed, and its permissions in the cluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::trial::Trial;
use crate::server::Server;

/// An installed operator.
pub struct Installed<'a, 's> {
    server: &'a Server,
    trial: &'a Trial<'s>,
    /// The Deployments, as OLM made them; where it made none, as the ClusterServiceVersion has them.
    deployments: Vec<Value>,
    accounts: BTreeSet<String>,
}

/// Target of a request.
#[derive(Clone, Copy)]
enum Place<'n> {
    /// All namespaces, or cluster-scoped.
    Cluster,
    /// The namespace of the operator.
    Namespace,
    /// The watched namespaces.
    Watched {
        /// Objects without a namespace.
        cluster_scoped: bool,
    },
    /// One object in the namespace of the operator.
    Named(&'n str),
    /// The namespace that the operator watches, as an object: a request for it is also one in it.
    Itself,
}

/// The entries of a list. Nothing for other values.
fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The rules of `permissions` or `clusterPermissions`, with their accounts.
fn rules<'v>(csv: &'v Value, key: &str) -> Vec<(&'v str, &'v Value)> {
    let permissions = csv["spec"]["install"]["spec"][key].as_array().into_iter().flatten();
    permissions
        .flat_map(|permission| {
            let account = text(permission, "/serviceAccountName");
            list(permission, "/rules").iter().map(move |rule| (account, rule))
        })
        .collect()
}

impl<'a, 's> Installed<'a, 's> {
    pub async fn new(server: &'a Server, trial: &'a Trial<'s>) -> anyhow::Result<Self> {
        let mut deployments = Vec::new();
        for deployment in list(&trial.csv, "/spec/install/spec/deployments") {
            let path = format!(
                "/apis/apps/v1/namespaces/{}/deployments/{}",
                trial.name,
                text(deployment, "/name")
            );
            let made = server.find(&path).await?;
            deployments.push(made.unwrap_or_else(|| deployment.clone()));
        }
        let account = |deployment: &Value| match text(deployment, "/spec/template/spec/serviceAccountName") {
            "" => "default".to_owned(),
            name => name.to_owned(),
        };
        let accounts = deployments.iter().map(account).collect();
        Ok(Self {
            server,
            trial,
            deployments,
            accounts,
        })
    }

    fn namespace(&self) -> &str {
        &self.trial.name
    }

    /// Returns true if an account may do something: in the namespace that the operator watches, or everywhere.
    async fn may(
        &self,
        account: &str,
        verb: &str,
        group: &str,
        resource: &str,
        place: Place<'_>,
    ) -> anyhow::Result<bool> {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let namespace = match place {
            Place::Cluster => String::new(),
            Place::Namespace => self.namespace().to_owned(),
            Place::Watched { cluster_scoped: true } => String::new(),
            Place::Watched { .. } | Place::Itself => self.trial.target().unwrap_or_default(),
            Place::Named(_) => self.namespace().to_owned(),
        };
        let name = match place {
            Place::Named(name) => name,
            Place::Itself => &namespace,
            _ => "",
        };
        self.review(
            account,
            json!({"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace, "name": name,
            }}),
        )
        .await
    }

    async fn review(&self, account: &str, mut spec: Value) -> anyhow::Result<bool> {
        spec["user"] = format!("system:serviceaccount:{}:{account}", self.namespace()).into();
        spec["groups"] = json!([
            "system:serviceaccounts",
            format!("system:serviceaccounts:{}", self.namespace()),
            "system:authenticated",
        ]);
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        let answer = self
            .server
            .post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review)
            .await?;
        Ok(answer["status"]["allowed"] == true)
    }

    pub async fn accounts_that_may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        here: bool,
    ) -> anyhow::Result<Vec<String>> {
        let place = if here { Place::Namespace } else { Place::Cluster };
        let mut found = Vec::new();
        let granted = ["permissions", "clusterPermissions"]
            .into_iter()
            .flat_map(|key| rules(&self.trial.csv, key))
            .map(|(account, _)| account);
        let all: BTreeSet<&str> = self.accounts.iter().map(String::as_str).chain(granted).collect();
        for account in all {
            if self.may(account, verb, group, resource, place).await? {
                found.push(account.to_owned());
            }
        }
        Ok(found)
    }

    async fn any_may(&self, verb: &str, group: &str, resource: &str, cluster_scoped: bool) -> anyhow::Result<bool> {
        for account in &self.accounts {
            if self
                .may(account, verb, group, resource, Place::Watched { cluster_scoped })
                .await?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Service accounts of Deployments without any permission in the API server's list. A Deployment with the default
    /// account next to one with permissions needs none.
    pub async fn without_rights(&self) -> anyhow::Result<Vec<String>> {
        let mut without = Vec::new();
        for account in &self.accounts {
            let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}", self.namespace());
            let exists = self.server.find(&path).await?.is_some();
            if !exists || !self.has_rights(account).await? {
                without.push(account.clone());
            }
        }
        if without.len() < self.accounts.len() {
            without.retain(|account| account != "default");
        }
        Ok(without)
    }

    async fn has_rights(&self, account: &str) -> anyhow::Result<bool> {
        let mut places = vec![self.namespace().to_owned()];
        places.extend(self.trial.target());
        for place in places {
            let all = self.server.rights(self.namespace(), account, &place).await?;
            let of_everybody = self.server.rights(self.namespace(), "somebody-else", &place).await?;
            if all != of_everybody {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Service accounts that OLM creates with permissions, but that no Deployment uses.
    pub async fn unused_accounts(&self) -> anyhow::Result<Vec<String>> {
        let named: BTreeSet<&str> = ["permissions", "clusterPermissions"]
            .into_iter()
            .flat_map(|key| rules(&self.trial.csv, key))
            .map(|(account, _)| account)
            .collect();
        let mut unused = Vec::new();
        for name in named {
            if !self.accounts.contains(name) && self.has_rights(name).await? {
                unused.push(name.to_owned());
            }
        }
        Ok(unused)
    }

    /// Owned APIs that no account of a Deployment may list and watch.
    pub async fn unwatched(&self) -> anyhow::Result<Vec<String>> {
        let owned: BTreeSet<&str> = list(&self.trial.csv, "/spec/customresourcedefinitions/owned")
            .iter()
            .map(|owned| text(owned, "/name"))
            .collect();
        let mut found = Vec::new();
        for crd in &self.trial.definitions {
            let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
            if !owned.contains(text(crd, "/metadata/name")) {
                continue;
            }
            let cluster_scoped = crd["spec"]["scope"] == "Cluster";
            for verb in ["list", "watch"] {
                if !self.any_may(verb, group, plural, cluster_scoped).await? {
                    found.push(format!("{verb} {plural}.{group}"));
                }
            }
        }
        Ok(found)
    }

    /// Deployments that elect a leader with an account that may not write leases or config maps. `None` if none elects.
    pub async fn leaderless(&self) -> anyhow::Result<Option<Vec<String>>> {
        let mut electing = Vec::new();
        for deployment in &self.deployments {
            let containers = list(deployment, "/spec/template/spec/containers");
            let elects = containers.iter().any(|container| {
                texts(container, "args").chain(texts(container, "command")).any(|word| {
                    let word = word.trim_start_matches('-');
                    (word.starts_with("leader-elect") || word.starts_with("enable-leader-election"))
                        && !word.ends_with("=false")
                })
            });
            if elects {
                electing.push(deployment);
            }
        }
        if electing.is_empty() {
            return Ok(None);
        }
        let mut without = Vec::new();
        for deployment in electing {
            let account = match text(deployment, "/spec/template/spec/serviceAccountName") {
                "" => "default",
                name => name,
            };
            let mut can = false;
            for (group, resource) in [("coordination.k8s.io", "leases"), ("", "configmaps")] {
                can = can || self.may_lock(account, group, resource).await?;
            }
            if !can {
                without.push(account.to_owned());
            }
        }
        Ok(Some(without))
    }

    /// Returns true if an account may make an object and then write it, perhaps only under a name that its rules have.
    async fn may_lock(&self, account: &str, group: &str, resource: &str) -> anyhow::Result<bool> {
        if !self.may(account, "create", group, resource, Place::Namespace).await? {
            return Ok(false);
        }
        let named = ["permissions", "clusterPermissions"]
            .into_iter()
            .flat_map(|key| rules(&self.trial.csv, key));
        let of_objects = self.trial.objects.iter().flat_map(|role| list(role, "/rules"));
        let all = named.map(|(_, rule)| rule).chain(of_objects);
        let names: BTreeSet<&str> = all.flat_map(|rule| texts(rule, "resourceNames")).chain([""]).collect();
        for name in names {
            if self.may(account, "update", group, resource, Place::Named(name)).await?
                && self.may(account, "get", group, resource, Place::Named(name)).await?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cluster-scoped resources in `permissions` that the service account cannot access.
    pub async fn refused_for_the_cluster(&self, scoped: &BTreeSet<(String, String)>) -> anyhow::Result<Vec<String>> {
        let mut refused = BTreeSet::new();
        for (account, rule) in rules(&self.trial.csv, "permissions") {
            for verb in texts(rule, "verbs") {
                for url in texts(rule, "nonResourceURLs") {
                    let spec = json!({"nonResourceAttributes": {"path": url, "verb": verb}});
                    if !self.review(account, spec).await? {
                        refused.insert(format!("{verb} {url}"));
                    }
                }
                for group in texts(rule, "apiGroups") {
                    for resource in texts(rule, "resources") {
                        let bare = resource.split('/').next().unwrap_or(resource);
                        let is_scoped =
                            scoped.contains(&(group.to_owned(), bare.to_owned())) || self.said_of_scope(resource);
                        let place = match (bare, verb) {
                            ("namespaces", "get" | "update" | "patch" | "delete") => Place::Itself,
                            // Asked for the namespace of a pod, or of a RoleBinding.
                            ("securitycontextconstraints" | "podsecuritypolicies", "use")
                            | ("clusterroles", "bind") => Place::Watched { cluster_scoped: false },
                            _ => Place::Cluster,
                        };
                        if is_scoped && !self.may(account, verb, group, resource, place).await? {
                            refused.insert(format!("{verb} {resource}.{group}"));
                        }
                    }
                }
            }
        }
        Ok(refused.into_iter().collect())
    }

    /// Returns true if RBAC-5 names a resource that this cluster does not have.
    fn said_of_scope(&self, resource: &str) -> bool {
        let findings = self
            .trial
            .subject
            .findings
            .iter()
            .filter(|finding| finding.rule == "RBAC-5");
        let mut words = findings.flat_map(|finding| finding.message.split([' ', ',', ':']));
        words.any(|word| word == resource)
    }

    /// Bindings in the cluster that name an account of this operator in a namespace other than its own.
    pub async fn bound_elsewhere(&self) -> anyhow::Result<Vec<String>> {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let accounts = self
            .server
            .get(&format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace()))
            .await?;
        let mut own: BTreeSet<&str> = list(&accounts, "/items")
            .iter()
            .map(|account| text(account, "/metadata/name"))
            .filter(|name| *name != "default")
            .collect();
        own.extend(self.accounts.iter().map(String::as_str));
        let mut found = Vec::new();
        for object in &self.trial.objects {
            let name = text(object, "/metadata/name");
            let path = match text(object, "/kind") {
                "RoleBinding" => format!("{rbac}/namespaces/{}/rolebindings/{name}", self.namespace()),
                "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings/{name}"),
                _ => continue,
            };
            let binding = self.server.find(&path).await?.unwrap_or_else(|| object.clone());
            for subject in list(&binding, "/subjects") {
                let (name, namespace) = (text(subject, "/name"), text(subject, "/namespace"));
                // A RoleBinding means its own namespace where it names none.
                let is_here = namespace == self.namespace() || namespace.is_empty() && binding["kind"] == "RoleBinding";
                if subject["kind"] == "ServiceAccount" && own.contains(name) && !is_here {
                    found.push(format!("{path}: {namespace}/{name}"));
                }
            }
        }
        Ok(found)
    }

    /// CRDs whose objects an account of a Deployment may write, but not their status.
    pub async fn without_status(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for crd in &self.trial.definitions {
            let has_status = |version: &Value| version.pointer("/subresources/status").is_some();
            if !list(crd, "/spec/versions").iter().any(has_status) {
                continue;
            }
            let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
            let cluster_scoped = crd["spec"]["scope"] == "Cluster";
            let mut may = [false; 2];
            for (may, resource) in may.iter_mut().zip([plural.to_owned(), format!("{plural}/status")]) {
                for verb in ["update", "patch"] {
                    *may = *may || self.any_may(verb, group, &resource, cluster_scoped).await?;
                }
            }
            if may == [true, false] {
                found.push(format!("{plural}.{group}"));
            }
        }
        Ok(found)
    }

    /// CRDs with a conversion webhook that is not a service of OLM, and with a version that the webhook must convert.
    pub async fn converted_by_others(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        let services: Vec<String> = list(&self.trial.csv, "/spec/install/spec/deployments")
            .iter()
            .map(|deployment| format!("{}-service", text(deployment, "/name").replace('.', "-")))
            .collect();
        for crd in &self.trial.definitions {
            let path = format!(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
                text(crd, "/metadata/name")
            );
            let Some(crd) = self.server.find(&path).await? else {
                continue;
            };
            let mut versions = list(&crd, "/spec/versions").iter();
            let is_converted = versions.any(|version| version["served"] == true && version["storage"] != true);
            if crd["spec"]["conversion"]["strategy"] != "Webhook" || !is_converted {
                continue;
            }
            let service = &crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"];
            let of_olm = service["namespace"] == self.namespace()
                && services.iter().any(|name| service["name"] == name.as_str());
            if !of_olm {
                found.push(format!("{}: {service}", text(&crd, "/metadata/name")));
            }
        }
        Ok(found)
    }

    /// Secrets with `cert` in their names that containers of an operator with webhooks mount, and that do not exist.
    /// The kubelet ignores volumes without mounts.
    pub async fn missing_certificates(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        if list(&self.trial.csv, "/spec/webhookdefinitions").is_empty() {
            return Ok(found);
        }
        // A node of OpenShift would have these. This control plane has no controller that creates them.
        let of_openshift: BTreeSet<&str> = self
            .trial
            .objects
            .iter()
            .filter_map(|object| object.pointer("/metadata/annotations")?.as_object())
            .flatten()
            .filter(|(key, _)| key.ends_with("openshift.io/serving-cert-secret-name"))
            .filter_map(|(_, name)| name.as_str())
            .collect();
        for deployment in &self.deployments {
            let containers = ["containers", "initContainers"]
                .iter()
                .flat_map(|key| list(deployment, &format!("/spec/template/spec/{key}")));
            let mounted: BTreeSet<&str> = containers
                .flat_map(|container| list(container, "/volumeMounts"))
                .map(|mount| text(mount, "/name"))
                .collect();
            let volumes = list(deployment, "/spec/template/spec/volumes").iter();
            for volume in volumes.filter(|volume| mounted.contains(text(volume, "/name"))) {
                let name = text(volume, "/secret/secretName");
                if !name.contains("cert") || volume["secret"]["optional"] == true || of_openshift.contains(name) {
                    continue;
                }
                let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.namespace());
                if self.server.find(&path).await?.is_none() {
                    found.push(name.to_owned());
                }
            }
        }
        Ok(found)
    }
}
