//! Permission check at start.
//!
//! Without it, a missing permission shows only when an object needs it, as a forbidden request in the log. Every
//! authenticated user may review its own access, so the check needs no permission.
use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use kube_grants::{Grant, Scope};

use crate::{explain, namespaces::Namespaces};

/// Reviews at a time. One after the other would delay the first reconcile.
const AT_ONCE: usize = 8;

/// A permission that the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// API group. Empty for the core group.
    pub group: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Subresource. Empty for the resource itself.
    pub subresource: String,
    /// RBAC verb.
    pub verb: String,
    /// Name of the object. Empty for all objects.
    pub name: String,
    /// Namespace. Empty for all namespaces.
    pub namespace: String,
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.group.is_empty() {
            write!(f, " in API group {}", self.group)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        match self.namespace.as_str() {
            "" => write!(f, " in all namespaces"),
            namespace => write!(f, " in namespace {namespace}"),
        }
    }
}

/// The permissions of `grant`: each verb on each name in each namespace.
fn needs(grant: &Grant, own: &str, watched: &Namespaces) -> Vec<Need> {
    let namespaces = match grant.scope {
        Scope::Own => vec![own.to_owned()],
        Scope::Cluster => vec![String::new()],
        Scope::Watched => watched.scopes().into_iter().map(Option::unwrap_or_default).collect(),
    };
    let all = [String::new()];
    let names = if grant.resource_names.is_empty() {
        &all[..]
    } else {
        &grant.resource_names
    };
    let (resource, subresource) = grant.resource.split_once('/').unwrap_or((&grant.resource, ""));
    let mut needs = Vec::new();
    for namespace in &namespaces {
        for name in names {
            needs.extend(grant.verbs.iter().map(|verb| Need {
                group: grant.group.to_string(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                verb: verb.to_string(),
                name: name.clone(),
                namespace: namespace.clone(),
            }));
        }
    }
    needs
}

/// Logs which permissions of `grants` are missing, with their reasons.
pub(crate) async fn report(client: &Client, grants: &[Grant], own: &str, watched: &Namespaces) {
    let each = |grant| {
        needs(grant, own, watched)
            .into_iter()
            .map(|need| (need, grant.why.as_ref()))
    };
    let reasons: Vec<(Need, &str)> = grants.iter().flat_map(each).collect();
    let needs = reasons.iter().map(|(need, _)| need.clone()).collect();
    match missing(client, needs).await {
        Ok(missing) if missing.is_empty() => tracing::debug!("all permissions granted"),
        Ok(missing) => {
            for (need, why) in reasons.iter().filter(|(need, _)| missing.contains(need)) {
                tracing::error!(missing = %need, needed_because = why, "missing permission");
            }
        }
        Err(error) => tracing::warn!(error = %explain::request(&error), "cannot check the permissions"),
    }
}

/// Asks the API server which of `needs` are denied.
///
/// One request for each namespace lists what is allowed. Authorizers such as webhooks cannot list all that they allow, so what the
/// list lacks is reviewed one by one.
///
/// # Errors
/// When a review request fails.
pub async fn missing(client: &Client, needs: Vec<Need>) -> Result<Vec<Need>, kube::Error> {
    let namespaces: BTreeSet<String> = needs.iter().map(|need| need.namespace.clone()).collect();
    let rules = |namespace: String| async move {
        // Without a list, each need is reviewed.
        let rules = rules(client, &namespace).await.unwrap_or_default();
        (namespace, rules)
    };
    let rules: BTreeMap<String, Vec<ResourceRule>> =
        stream::iter(namespaces).map(rules).buffered(AT_ONCE).collect().await;
    let is_listed = |need: &Need| rules.get(&need.namespace).is_some_and(|rules| need.is_in(rules));
    let unknown: Vec<Need> = needs.into_iter().filter(|need| !is_listed(need)).collect();
    let denied = |need: Need| async move { Ok::<_, kube::Error>((!is_allowed(client, &need).await?).then_some(need)) };
    let denied: Vec<Option<Need>> = stream::iter(unknown)
        .map(denied)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(denied.into_iter().flatten().collect())
}

/// The rules for the operator in `namespace`. If it is empty, those that apply in all namespaces.
async fn rules(client: &Client, namespace: &str) -> Result<Vec<ResourceRule>, kube::Error> {
    // The API server requires a namespace. No RoleBinding is in one with this name, which is none.
    let namespace = if namespace.is_empty() { "-" } else { namespace };
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(namespace.to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let reviews: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.map(|status| status.resource_rules).unwrap_or_default())
}

async fn is_allowed(client: &Client, need: &Need) -> Result<bool, kube::Error> {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let attributes = ResourceAttributes {
        group: Some(need.group.clone()),
        resource: Some(need.resource.clone()),
        subresource: text(&need.subresource),
        verb: Some(need.verb.clone()),
        name: text(&need.name),
        namespace: Some(need.namespace.clone()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..Default::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

impl Need {
    /// Returns true if one of `rules` allows it, as RBAC matches rules.
    fn is_in(&self, rules: &[ResourceRule]) -> bool {
        let allows = |list: &[String], value: &str| list.iter().any(|entry| entry == "*" || entry == value);
        let resource = |entry: &String| match entry.split_once('/') {
            _ if entry == "*" => true,
            None => self.subresource.is_empty() && *entry == self.resource,
            Some((resource, subresource)) => {
                subresource == self.subresource && (resource == "*" || resource == self.resource)
            }
        };
        rules.iter().any(|rule| {
            let names = rule.resource_names.as_deref().unwrap_or_default();
            allows(&rule.verbs, &self.verb)
                && allows(rule.api_groups.as_deref().unwrap_or_default(), &self.group)
                && rule.resources.iter().flatten().any(resource)
                && (names.is_empty() || names.contains(&self.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};

    use super::*;

    fn texts(grant: &Grant, watched: &str) -> Vec<String> {
        let needs = needs(grant, "own", &watched.parse().unwrap());
        needs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_grant_is_a_need_for_each_verb_and_name() {
        let grant = Grant::of::<Deployment>(Scope::Watched, ["get", "update"], "why");
        let everywhere = "deployments in API group apps in all namespaces";
        assert_eq!(
            texts(&grant, ""),
            [format!("get {everywhere}"), format!("update {everywhere}")]
        );
        let named = texts(&grant.on("scale").named(["a", "b"]), "");
        assert_eq!(named.len(), 4);
        assert_eq!(
            named.last().map(String::as_str),
            Some("update deployments/scale in API group apps b in all namespaces")
        );
    }

    #[test]
    fn a_grant_is_a_need_in_each_namespace() {
        let with = |scope, watched| texts(&Grant::of::<Pod>(scope, ["list"], "why"), watched);
        assert_eq!(
            with(Scope::Watched, "a,b"),
            ["list pods in namespace a", "list pods in namespace b"]
        );
        assert_eq!(with(Scope::Watched, ""), ["list pods in all namespaces"]);
        assert_eq!(with(Scope::Own, "a,b"), ["list pods in namespace own"]);
        assert_eq!(with(Scope::Cluster, "a,b"), ["list pods in all namespaces"]);
    }

    #[test]
    fn rules_allow_what_rbac_allows() {
        let need = |verb: &str, resource: &str, name: &str| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            Need {
                group: "apps".to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                verb: verb.to_owned(),
                name: name.to_owned(),
                namespace: String::new(),
            }
        };
        let rule = |group: &str, resource: &str, verb: &str, names: &[&str]| ResourceRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: vec![verb.to_owned()],
            resource_names: Some(names.iter().map(|&name| name.to_owned()).collect()),
        };
        let deployments = need("get", "deployments", "");
        let status = need("get", "deployments/status", "");
        for (rule, allows, allows_status) in [
            (rule("apps", "deployments", "get", &[]), true, false),
            (rule("*", "*", "*", &[]), true, true),
            (rule("apps", "deployments/status", "*", &[]), false, true),
            (rule("apps", "*/status", "get", &[]), false, true),
            (rule("apps", "pods/status", "get", &[]), false, false),
            (rule("", "deployments", "get", &[]), false, false),
            (rule("apps", "deployments", "list", &[]), false, false),
            (rule("apps", "*", "get", &["a"]), false, false),
        ] {
            assert_eq!(deployments.is_in(std::slice::from_ref(&rule)), allows, "{rule:?}");
            assert_eq!(status.is_in(std::slice::from_ref(&rule)), allows_status, "{rule:?}");
        }
        let named = rule("apps", "deployments", "get", &["a"]);
        assert!(need("get", "deployments", "a").is_in(std::slice::from_ref(&named)));
        assert!(!need("get", "deployments", "b").is_in(&[named]));
    }
}
