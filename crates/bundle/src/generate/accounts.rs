//! Permissions: the rules that a service account of the operator has through bindings, and the roles and bindings that
//! remain separate objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::collect::{Collection, RBAC};
use super::typed::Typed;
use super::{Options, Origin};
use olmkit_base::object::{PERMISSIONS_ANNOTATION, selector};

/// The service account of every namespace.
const DEFAULT_ACCOUNT: &str = "default";

/// The value of the annotation that names the CSV field for the rules of a binding.
fn annotated(binding: &Typed) -> Option<&str> {
    binding
        .value
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(PERMISSIONS_ANNOTATION))
        .and_then(Value::as_str)
}

/// Returns true if the rules of a ClusterRoleBinding need no cluster scope in a bundle.
fn is_namespaced(binding: &Typed) -> bool {
    annotated(binding) == Some("namespaced")
}

/// Returns true if the rules of a RoleBinding are only for the operator's own namespace: then it remains an object, as
/// does its Role. With OLM v1 `permissions` apply only in the watched namespace.
fn is_for_own_namespace(binding: &Typed) -> bool {
    annotated(binding) == Some("own-namespace")
}

/// The binding with accounts of the operator in whichever namespace it is installed: those without a namespace are in the binding's.
fn in_any_namespace(mut binding: Typed, accounts: &BTreeSet<String>) -> Typed {
    let subjects = binding.value.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        let name = subject.get("name").and_then(Value::as_str).unwrap_or_default();
        if accounts.contains(name)
            && let Some(fields) = subject.as_object_mut()
        {
            fields.remove("namespace");
        }
    }
    binding
}

/// The accounts whose permissions go into the CSV: those of the Deployments and the extra ones.
pub(super) fn accounts(found: &Collection, options: &Options) -> BTreeSet<String> {
    let mut accounts: BTreeSet<String> = found.deployments.iter().map(account_of).collect();
    accounts.extend(options.extra_service_accounts.iter().cloned());
    accounts
}

fn account_of(deployment: &Typed) -> String {
    match deployment
        .value
        .pointer("/spec/template/spec/serviceAccountName")
        .and_then(Value::as_str)
    {
        None | Some("") => DEFAULT_ACCOUNT.to_owned(),
        Some(name) => name.to_owned(),
    }
}

/// The result for roles, bindings and service accounts.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// Entries of `permissions`.
    pub permissions: Vec<Value>,
    /// Entries of `clusterPermissions`.
    pub cluster_permissions: Vec<Value>,
    /// Objects that become files, in input order: Roles, ClusterRoles, RoleBindings, ClusterRoleBindings, accounts.
    pub files: Vec<Typed>,
    /// ClusterRoles whose rules are in the CSV.
    pub absorbed: Vec<Typed>,
    /// Names of ClusterRoles that the operator may bind to other accounts, or that extend other ClusterRoles. Strict
    /// mode keeps the objects.
    pub shared: BTreeSet<String>,
    /// Roles whose rules are in the CSV and that a remaining binding binds to other subjects, each with the binding. Strict mode keeps
    /// the objects.
    pub bound_to_others: Vec<(Typed, Typed)>,
    /// Bindings to an account of the CSV whose role is not in the input.
    pub dangling: Vec<Typed>,
    /// Bindings that a bundle loses: they have no subject.
    pub without_subject: Vec<Typed>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Role,
    ClusterRole,
}

/// Splits permissions between CSV and files.
pub(super) fn split(found: &Collection, options: &Options) -> Split {
    let accounts = accounts(found, options);
    let roles = by_name(&found.roles);
    let cluster_roles = by_name(&found.cluster_roles);
    let mut split = Split::default();
    let mut namespaced = Bindings::new(&found.role_bindings);
    let mut clusterwide = Bindings::new(&found.cluster_role_bindings);
    let in_roles = namespaced.bound(Kind::Role, &roles, &accounts);
    let in_cluster_roles = namespaced.bound(Kind::ClusterRole, &cluster_roles, &accounts);
    let across = clusterwide.bound(Kind::ClusterRole, &cluster_roles, &accounts);

    let mut permissions = Rules::new(&accounts);
    for binding in found
        .role_bindings
        .iter()
        .filter(|binding| !is_for_own_namespace(binding))
    {
        match kind_of(binding) {
            Some(Kind::Role) => permissions.add(binding, &roles, &in_roles),
            Some(Kind::ClusterRole) => permissions.add(binding, &cluster_roles, &in_cluster_roles),
            None => {}
        }
    }
    let mut cluster_permissions = Rules::new(&accounts);
    for binding in &found.cluster_role_bindings {
        // operator-sdk checks the role's name only here. A ClusterRoleBinding can refer to nothing else.
        let into = if is_namespaced(binding) {
            &mut permissions
        } else {
            &mut cluster_permissions
        };
        into.add(binding, &cluster_roles, &across);
    }
    split.permissions = permissions.entries(options.strict);
    split.cluster_permissions = cluster_permissions.entries(options.strict);

    let mut used: BTreeSet<&str> = in_cluster_roles.union(&across).copied().collect();
    split.absorbed = used
        .iter()
        .filter_map(|name| cluster_roles.get(name).map(|role| (*role).clone()))
        .collect();
    let may_bind = in_roles.iter().filter_map(|name| roles.get(name).copied());
    let may_bind = may_bind.chain(&split.absorbed).any(grants_binding);
    split.shared = split
        .absorbed
        .iter()
        .filter(|role| {
            (may_bind && !grants_binding(role)) || extends_others(role) || is_aggregated(role, &found.cluster_roles)
        })
        .map(|role| role.name().to_owned())
        .collect();
    let place = |binding: Typed| {
        if is_for_own_namespace(&binding) {
            in_any_namespace(binding, &accounts)
        } else {
            binding
        }
    };
    let left = namespaced.left(&found.role_bindings);
    let mut bindings: Vec<Typed> = left.into_iter().map(place).collect();
    bindings.extend(clusterwide.left(&found.cluster_role_bindings));
    for binding in &bindings {
        let role = match kind_of(binding) {
            Some(Kind::Role) => roles
                .get(role_name(binding))
                .filter(|role| in_roles.contains(role.name())),
            Some(Kind::ClusterRole) => {
                let role = cluster_roles.get(role_name(binding));
                role.filter(|role| used.contains(role.name()) && !split.shared.contains(role.name()))
            }
            None => None,
        };
        if let Some(role) = role {
            split.bound_to_others.push(((*role).clone(), binding.clone()));
        }
    }
    let mut absorbed_roles = in_roles.clone();
    if options.strict {
        used.retain(|name| !split.shared.contains(*name));
        for (role, binding) in &split.bound_to_others {
            match kind_of(binding) {
                Some(Kind::Role) => absorbed_roles.remove(role.name()),
                _ => used.remove(role.name()),
            };
        }
        for binding in &mut bindings {
            if !is_for_own_namespace(binding) {
                without_accounts(binding, &roles, &cluster_roles, &accounts);
            }
        }
    }
    split.files.extend(remaining(&found.roles, &roles, &absorbed_roles));
    split
        .files
        .extend(remaining(&found.cluster_roles, &cluster_roles, &used));
    split.files.extend(bindings);
    split.files.extend(
        found
            .service_accounts
            .iter()
            .filter(|account| !accounts.contains(account.name()))
            .cloned(),
    );

    for binding in found.role_bindings.iter().chain(&found.cluster_role_bindings) {
        let known = match kind_of(binding) {
            Some(Kind::Role) => roles.contains_key(role_name(binding)),
            Some(Kind::ClusterRole) => cluster_roles.contains_key(role_name(binding)),
            None => false,
        };
        if !known && subjects(binding).any(|subject| accounts.contains(subject)) {
            split.dangling.push(binding.clone());
        }
        if known && binding.list("/subjects").is_empty() {
            split.without_subject.push(binding.clone());
        }
    }
    split
}

/// The bindings that OLM makes itself, by position: to `system:auth-delegator` and, in `kube-system`, to
/// `extension-apiserver-authentication-reader`, for the account of each Deployment with a webhook or an API.
pub(super) fn bound_by_olm(found: &Collection, split: &Split, csv: &Value) -> BTreeSet<Origin> {
    let served: BTreeSet<&str> = ["/spec/webhookdefinitions", "/spec/apiservicedefinitions/owned"]
        .into_iter()
        .filter_map(|list| csv.pointer(list)?.as_array())
        .flatten()
        .filter_map(|served| served.get("deploymentName")?.as_str())
        .collect();
    let deployments = found.deployments.iter();
    let accounts: BTreeSet<String> = deployments
        .filter(|deployment| served.contains(deployment.name()))
        .map(account_of)
        .collect();
    let is_made = |binding: &&Typed| {
        let role = (kind_of(binding), role_name(binding));
        let is_role = match binding.document.kind() {
            "ClusterRoleBinding" => role == (Some(Kind::ClusterRole), "system:auth-delegator"),
            _ => {
                role == (Some(Kind::Role), "extension-apiserver-authentication-reader")
                    && binding.namespace() == "kube-system"
            }
        };
        let all = binding.list("/subjects");
        is_role && subjects(binding).filter(|subject| accounts.contains(*subject)).count() == all.len()
    };
    let made = split.dangling.iter().filter(is_made);
    made.map(|binding| binding.document.origin.clone()).collect()
}

/// The namespaces of the service accounts of a binding.
pub(super) fn namespaces(binding: &Typed) -> impl Iterator<Item = &str> {
    let accounts = binding
        .list("/subjects")
        .iter()
        .filter(|subject| subject.get("kind").and_then(Value::as_str) == Some("ServiceAccount"));
    accounts.map(|subject| subject.get("namespace").and_then(Value::as_str).unwrap_or_default())
}

/// Returns true if a role lets its holder bind roles to accounts. A role of this kind is the operator's own, not one that it hands out.
fn grants_binding(role: &Typed) -> bool {
    role.list("/rules").iter().any(|rule| {
        let has = |field: &str, wanted: &[&str]| {
            let values = rule.get(field).and_then(Value::as_array).into_iter().flatten();
            values.filter_map(Value::as_str).any(|value| wanted.contains(&value))
        };
        has("apiGroups", &[RBAC, "*"])
            && has("resources", &["rolebindings", "clusterrolebindings", "*"])
            && has("verbs", &["create", "*"])
    })
}

/// Returns true if the API server aggregates the rules of a ClusterRole into others.
fn extends_others(role: &Typed) -> bool {
    let labels = role.value.pointer("/metadata/labels").and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .any(|(key, _)| key.starts_with("rbac.authorization.k8s.io/aggregate-to-"))
}

/// Removes the accounts whose rules are in the CSV from a binding that remains for its other subjects. A binding whose role is not in
/// the input is the only source of its rules.
fn without_accounts(
    binding: &mut Typed,
    roles: &BTreeMap<&str, &Typed>,
    cluster_roles: &BTreeMap<&str, &Typed>,
    accounts: &BTreeSet<String>,
) {
    let known = match kind_of(binding) {
        Some(Kind::Role) => roles.contains_key(role_name(binding)),
        Some(Kind::ClusterRole) => cluster_roles.contains_key(role_name(binding)),
        None => false,
    };
    let Some(subjects) = binding.value.get_mut("subjects").and_then(Value::as_array_mut) else {
        return;
    };
    if known {
        subjects.retain(|subject| {
            let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
            text("kind") != "ServiceAccount" || !accounts.contains(text("name"))
        });
    }
}

/// Returns true if a ClusterRole of the input collects the rules of another one by its labels.
fn is_aggregated(role: &Typed, cluster_roles: &[Typed]) -> bool {
    let labels = role.value.pointer("/metadata/labels").and_then(Value::as_object);
    let Some(labels) = labels.filter(|labels| !labels.is_empty()) else {
        return false;
    };
    let others = cluster_roles.iter().filter(|other| other.name() != role.name());
    others
        .flat_map(|other| other.list("/aggregationRule/clusterRoleSelectors"))
        .any(|wanted| selector::selects(Some(wanted), Some(labels)))
}

fn by_name(list: &[Typed]) -> BTreeMap<&str, &Typed> {
    // If two roles have the same name, the later one counts.
    list.iter().map(|role| (role.name(), role)).collect()
}

/// Objects not used in the CSV, one for each name, in input order.
fn remaining(list: &[Typed], named: &BTreeMap<&str, &Typed>, used: &BTreeSet<&str>) -> Vec<Typed> {
    let mut seen = BTreeSet::new();
    list.iter()
        .filter(|role| !used.contains(role.name()) && seen.insert(role.name().to_owned()))
        .filter_map(|role| named.get(role.name()).map(|last| (*last).clone()))
        .collect()
}

fn role_name(binding: &Typed) -> &str {
    binding
        .value
        .pointer("/roleRef/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn kind_of(binding: &Typed) -> Option<Kind> {
    let group = binding
        .value
        .pointer("/roleRef/apiGroup")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !group.is_empty() && group != RBAC {
        return None;
    }
    match binding.value.pointer("/roleRef/kind").and_then(Value::as_str) {
        Some("Role") => Some(Kind::Role),
        Some("ClusterRole") => Some(Kind::ClusterRole),
        _ => None,
    }
}

/// Names of the service accounts a binding is for. Their namespaces are not looked at.
pub(super) fn subjects(binding: &Typed) -> impl Iterator<Item = &str> {
    binding
        .list("/subjects")
        .iter()
        .filter(|subject| subject.get("kind").and_then(Value::as_str) == Some("ServiceAccount"))
        .map(|subject| subject.get("name").and_then(Value::as_str).unwrap_or_default())
}

/// Bindings that still have a subject outside of the CSV.
struct Bindings<'a> {
    left: Vec<&'a Typed>,
}

impl<'a> Bindings<'a> {
    fn new(list: &'a [Typed]) -> Self {
        Self {
            left: list.iter().collect(),
        }
    }

    /// Names of the roles of one kind that are bound to a service account of the CSV. Bindings without another subject
    /// are dropped.
    fn bound(
        &mut self,
        kind: Kind,
        roles: &BTreeMap<&'a str, &'a Typed>,
        accounts: &BTreeSet<String>,
    ) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        self.left.retain(|binding| {
            let name = role_name(binding);
            if kind_of(binding) != Some(kind) || !roles.contains_key(name) || is_for_own_namespace(binding) {
                return true;
            }
            let total = binding.list("/subjects").len();
            let ours = subjects(binding).filter(|subject| accounts.contains(*subject)).count();
            if ours > 0 {
                names.insert(name);
            }
            ours < total
        });
        names
    }

    /// The bindings that become files. If two have the same name, the later one is used in both positions.
    fn left(&self, all: &[Typed]) -> Vec<Typed> {
        let named = by_name(all);
        self.left
            .iter()
            .filter_map(|binding| named.get(binding.name()).map(|last| (*last).clone()))
            .collect()
    }
}

/// Rules by account.
struct Rules {
    by_account: BTreeMap<String, Vec<Value>>,
}

impl Rules {
    fn new(accounts: &BTreeSet<String>) -> Self {
        Self {
            by_account: accounts.iter().map(|account| (account.clone(), Vec::new())).collect(),
        }
    }

    fn add(&mut self, binding: &Typed, roles: &BTreeMap<&str, &Typed>, used: &BTreeSet<&str>) {
        let name = role_name(binding);
        let Some(role) = roles.get(name).filter(|_| used.contains(name)) else {
            return;
        };
        for subject in subjects(binding) {
            if let Some(rules) = self.by_account.get_mut(subject) {
                rules.extend(role.list("/rules").iter().cloned());
            }
        }
    }

    /// Entries for accounts that have a rule, sorted by account.
    fn entries(self, merged: bool) -> Vec<Value> {
        self.by_account
            .into_iter()
            .filter(|(_, rules)| !rules.is_empty())
            .map(|(account, rules)| {
                let rules = if merged { merge(rules) } else { rules };
                json!({"serviceAccountName": account, "rules": rules})
            })
            .collect()
    }
}

fn merge(rules: Vec<Value>) -> Vec<Value> {
    let typed: Result<Vec<olmkit_project::rbac::PolicyRule>, _> =
        rules.iter().cloned().map(serde_json::from_value).collect();
    match typed {
        Ok(typed) => olmkit_project::rbac::merge(typed)
            .into_iter()
            .map(|rule| json!(rule))
            .collect(),
        // Rules that do not fit the Go type are kept, and the validator reports them.
        Err(_) => rules,
    }
}
