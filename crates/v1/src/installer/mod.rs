//! Permissions of the service account that installs a bundle. OLM v1 up to 1.10 applies objects as
//! `spec.serviceAccount` of the ClusterExtension. Later releases use operator-controller's account.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use olmkit_base::object::split_api_version;
use olmkit_bundle::kinds;
use olmkit_project::rbac::{self, Account, PolicyRule};

use super::text;

mod granted;
mod single;

use granted::Granted;
pub use granted::TooManyRights;
use single::{singles, without_covered};

const RBAC: &str = "rbac.authorization.k8s.io";
/// operator-controller's verbs on each of its objects.
const OF_OBJECT: [&str; 4] = ["delete", "get", "patch", "update"];

/// Parameters of an installation.
#[derive(Debug, Clone, Copy)]
pub struct Installer<'i> {
    /// The account.
    pub account: Account<'i>,
    /// The name of the ClusterExtension.
    pub extension: &'i str,
}

/// The minimal permissions for installing objects, and for repairing, upgrading and removing them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rights {
    /// In the cluster.
    pub cluster: Vec<PolicyRule>,
    /// In a namespace.
    pub namespaces: BTreeMap<String, Vec<PolicyRule>>,
}

/// The names of objects of one resource in one scope.
type Names<'o> = BTreeMap<(&'o str, String), BTreeSet<&'o str>>;

impl Rights {
    /// Those for objects as OLM v1 applies them, and for a ClusterExtension of this name.
    ///
    /// # Errors
    /// The roles among the objects grant more than [`olmkit_base::limits::INSTALLER_RIGHTS`].
    pub fn from_objects(objects: &[Value], extension: &str) -> Result<Self, TooManyRights> {
        let mut scopes: BTreeMap<&str, Names<'_>> = BTreeMap::new();
        let mut cluster = vec![rule(
            "olm.operatorframework.io",
            "clusterextensions/finalizers",
            &["update"],
            [extension],
        )];
        let mut namespaces: BTreeMap<&str, Vec<PolicyRule>> = BTreeMap::new();
        let mut granted = Granted::new(objects);
        for object in objects {
            let group = split_api_version(text(object, "/apiVersion")).map_or("", |(group, _)| group);
            let kind = text(object, "/kind");
            let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
            let namespace = if is_of_cluster(kind) { "" } else { namespace };
            let resource = resource(kind);
            let names = scopes.entry(namespace).or_default();
            names.entry((group, resource)).or_default().insert(name);
            if group == RBAC {
                let into = match namespace {
                    "" => &mut cluster,
                    namespace => namespaces.entry(namespace).or_default(),
                };
                into.extend(granted.by(object, namespace)?);
            }
        }
        for (namespace, names) in scopes {
            for ((group, resource), names) in names {
                // RBAC for watches cannot be restricted to names, and namespaces are not used.
                cluster.push(rule(group, &resource, &["list", "watch"], []));
                let into = match namespace {
                    "" => &mut cluster,
                    namespace => namespaces.entry(namespace).or_default(),
                };
                into.push(rule(group, &resource, &["create"], []));
                into.push(rule(group, &resource, &OF_OBJECT, names));
            }
        }
        let singles = singles(&cluster);
        let namespaces = namespaces.iter();
        Ok(Self {
            namespaces: namespaces
                .map(|(namespace, rules)| (*namespace, without_covered(rules, &singles)))
                .filter(|(_, rules)| !rules.is_empty())
                .map(|(namespace, rules)| (namespace.to_owned(), rbac::merge(rules)))
                .collect(),
            cluster: rbac::merge(without_covered(&cluster, &BTreeSet::new())),
        })
    }

    /// The service account with these permissions: a ServiceAccount, roles and bindings.
    #[must_use]
    pub fn objects(&self, installer: &Installer<'_>) -> Vec<Value> {
        let account = installer.account;
        let labels = rbac::Labels::new();
        let mut objects = vec![json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
        })];
        let name = account.name;
        if !self.cluster.is_empty() {
            objects.push(rbac::cluster_role(name, &labels, &self.cluster));
            objects.push(rbac::cluster_binding(name, &labels, name, account));
        }
        for (namespace, rules) in &self.namespaces {
            objects.push(rbac::role(name, namespace, &labels, rules));
            objects.push(rbac::binding(name, namespace, &labels, name, account));
        }
        for object in &mut objects {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("labels");
            }
        }
        objects
    }
}

fn rule<'n>(group: &str, resource: &str, verbs: &[&str], names: impl IntoIterator<Item = &'n str>) -> PolicyRule {
    PolicyRule {
        api_groups: vec![group.to_owned()],
        resources: vec![resource.to_owned()],
        resource_names: names.into_iter().map(str::to_owned).collect(),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

/// Kinds that OLM v1 creates and bundles do not contain are webhook configurations, which are cluster-scoped, and those
/// of cert-manager.
fn is_of_cluster(kind: &str) -> bool {
    match kinds::find(kind) {
        Some(known) => known.scope == kinds::Scope::Cluster,
        None => kind.ends_with("WebhookConfiguration"),
    }
}

/// The resource of a kind: all kinds that OLM v1 applies follow the rule of English.
fn resource(kind: &str) -> String {
    let name = kind.to_lowercase();
    match name.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if name.ends_with('s') => format!("{name}es"),
        None => format!("{name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rules: &[PolicyRule]) -> Vec<String> {
        let line = |rule: &PolicyRule| {
            format!(
                "{} {} {} {}",
                rule.verbs.join(","),
                rule.api_groups.join(","),
                rule.resources.join(","),
                rule.resource_names.join(",")
            )
        };
        rules.iter().map(|rule| line(rule).trim_end().to_owned()).collect()
    }

    #[test]
    fn rights_are_to_manage_the_objects_and_all_that_these_grant() {
        let objects = [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "op", "namespace": "mine"}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "op"},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "auth", "namespace": "mine"},
                "roleRef": {"kind": "ClusterRole", "name": "system:auth-delegator"},
            }),
        ];
        let rights = Rights::from_objects(&objects, "cache").unwrap();
        assert_eq!(
            lines(&rights.cluster),
            [
                "get",
                "list  pods",
                "list,watch  serviceaccounts",
                "update olm.operatorframework.io clusterextensions/finalizers cache",
                "create,list,watch rbac.authorization.k8s.io clusterroles",
                "list,watch rbac.authorization.k8s.io rolebindings",
                "delete,get,patch,update rbac.authorization.k8s.io clusterroles op",
            ]
        );
        let [(namespace, rules)] = rights.namespaces.iter().collect::<Vec<_>>()[..] else {
            panic!("{rights:?}")
        };
        assert_eq!(namespace, "mine");
        assert_eq!(
            lines(rules),
            [
                "create  serviceaccounts",
                "delete,get,patch,update  serviceaccounts op",
                "create rbac.authorization.k8s.io rolebindings",
                "delete,get,patch,update rbac.authorization.k8s.io rolebindings auth",
                "bind rbac.authorization.k8s.io clusterroles system:auth-delegator",
            ]
        );
        let account = Account {
            name: "installer",
            namespace: "mine",
        };
        let installer = Installer {
            account,
            extension: "cache",
        };
        let made = rights.objects(&installer);
        let kinds: Vec<&str> = made.iter().map(|object| text(object, "/kind")).collect();
        assert_eq!(
            kinds,
            [
                "ServiceAccount",
                "ClusterRole",
                "ClusterRoleBinding",
                "Role",
                "RoleBinding"
            ]
        );
    }

    #[test]
    fn aggregated_roles_need_the_right_to_escalate() {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        });
        let rights = Rights::from_objects(&[role], "cache").unwrap();
        let lines = lines(&rights.cluster);
        let expected = "delete,escalate,get,patch,update rbac.authorization.k8s.io clusterroles all";
        assert!(lines.iter().any(|line| line == expected), "{lines:?}");
    }

    #[test]
    fn permissions_that_another_one_includes_are_omitted() {
        let objects = [
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "op", "namespace": "mine"}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "op"},
                "rules": [
                    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "get", "patch"]},
                    {"apiGroups": ["batch"], "resources": ["*"], "verbs": ["*"]},
                    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
                ],
            }),
        ];
        let rights = Rights::from_objects(&objects, "cache").unwrap();
        let of_cluster = lines(&rights.cluster);
        assert!(
            of_cluster.contains(&"create,get,list,patch,watch apps deployments".to_owned()),
            "{of_cluster:?}"
        );
        assert!(of_cluster.contains(&"* batch *".to_owned()), "{of_cluster:?}");
        assert!(!of_cluster.iter().any(|line| line.contains("jobs")), "{of_cluster:?}");
        assert_eq!(lines(&rights.namespaces["mine"]), ["delete,update apps deployments op"]);
    }

    #[test]
    fn roles_that_grant_countless_rights_are_refused() {
        let texts = |count: usize| (0..count).map(|number| format!("t{number}")).collect::<Vec<_>>();
        let role = |name: &str, count: usize| {
            let texts = texts(count);
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                "rules": [{"apiGroups": texts, "resources": texts, "verbs": texts, "resourceNames": texts}],
            })
        };
        let error = Rights::from_objects(&[role("small", 5), role("large", 10_000)], "cache").unwrap_err();
        assert_eq!((error.kind.as_str(), error.name.as_str()), ("ClusterRole", "large"));
        assert!(error.to_string().contains("16 MiB"), "{error}");
        // One role with many bindings counts once for each namespace.
        let binding = |number: usize| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": format!("b{number}"), "namespace": format!("n{}", number % 2)},
                "roleRef": {"kind": "ClusterRole", "name": "some"},
            })
        };
        let objects: Vec<Value> = (0..2000).map(binding).chain([role("some", 12)]).collect();
        let rights = Rights::from_objects(&objects, "cache").unwrap();
        assert_eq!(rights.namespaces.len(), 2);
    }

    #[test]
    fn resources_are_the_plurals_of_kinds() {
        for (kind, plural) in [
            ("NetworkPolicy", "networkpolicies"),
            ("PriorityClass", "priorityclasses"),
            ("ConsoleYAMLSample", "consoleyamlsamples"),
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ] {
            assert_eq!(resource(kind), plural);
        }
    }
}
