//! Permission check at start.
//!
//! Without it, a missing permission shows only when an object needs it, as a forbidden request in the log. Every
//! authenticated user may review its own access, so the check needs no permission.
use std::borrow::Cow;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, Resource, api::PostParams};

use crate::{explain, namespaces::Namespaces};

/// A permission that the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Subresource; empty for the resource itself.
    pub subresource: String,
    /// RBAC verb.
    pub verb: String,
    /// Name of the object; empty for all objects.
    pub name: String,
    /// Namespace; empty for all namespaces.
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

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In every namespace that the operator watches.
    Watched,
    /// In the operator's own namespace.
    Own,
    /// In the cluster: for objects without namespace.
    Cluster,
}

/// A permission, whatever the namespaces are, and what it is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The permission; its namespace is not used.
    pub need: Need,
    /// Where it is needed.
    pub scope: Where,
    /// What for: logged when it is missing.
    pub why: String,
}

impl Requirement {
    /// The permission in each namespace.
    fn needs(&self, own: &str, watched: &Namespaces) -> Vec<Need> {
        let namespaces = match self.scope {
            Where::Own => vec![own.to_owned()],
            Where::Cluster => vec![String::new()],
            Where::Watched => watched.scopes().into_iter().map(Option::unwrap_or_default).collect(),
        };
        let with = |namespace| Need {
            namespace,
            ..self.need.clone()
        };
        namespaces.into_iter().map(with).collect()
    }
}

/// A row of an operator's table of permissions: verbs on a resource, where, and what for. Group and plural come from the type,
/// so a misspelt resource does not compile.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
/// use kube_manager::access::{Grant, Where};
///
/// let table = [
///     Grant::of::<Deployment>(Where::Watched, &["create", "list", "patch", "watch"], "each object has one"),
///     Grant::of::<Lease>(Where::Own, &["get", "update"], "one of several replicas leads").named(&["greeter"]),
/// ];
/// assert_eq!(table.iter().flat_map(Grant::requirements).count(), 6);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural name of the resource, with the subresource after a slash: as RBAC rules name it.
    pub resource: Cow<'static, str>,
    /// Names of the objects; empty for all.
    pub names: &'static [&'static str],
    /// RBAC verbs.
    pub verbs: &'static [&'static str],
    /// Where.
    pub scope: Where,
    /// What for: logged when it is missing.
    pub why: &'static str,
}

impl Grant {
    /// A permission on the resource of a type.
    pub fn of<K: Resource<DynamicType = ()>>(scope: Where, verbs: &'static [&'static str], why: &'static str) -> Self {
        Self {
            group: K::group(&()),
            resource: K::plural(&()),
            names: &[],
            verbs,
            scope,
            why,
        }
    }

    /// The same on a subresource.
    #[must_use]
    pub fn on(self, subresource: &str) -> Self {
        Self {
            resource: format!("{}/{subresource}", self.resource).into(),
            ..self
        }
    }

    /// The same on objects of these names only.
    #[must_use]
    pub fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// What to check at the start: each verb on each name.
    pub fn requirements(&self) -> impl Iterator<Item = Requirement> {
        let names = if self.names.is_empty() { &[""] } else { self.names };
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let each = move |name: &'static str, verb: &'static str| Requirement {
            need: Need {
                group: self.group.to_string(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                verb: verb.to_owned(),
                name: name.to_owned(),
                namespace: String::new(),
            },
            scope: self.scope,
            why: self.why.to_owned(),
        };
        names
            .iter()
            .flat_map(move |name| self.verbs.iter().map(move |verb| (*name, *verb)))
            .map(move |(name, verb)| each(name, verb))
    }
}

impl Requirement {
    /// The permissions to check at the start for a grant: each verb on each name.
    pub fn from_grant(grant: &kube_grants::Grant) -> Vec<Self> {
        let all = [String::new()];
        let names = if grant.resource_names.is_empty() {
            &all[..]
        } else {
            &grant.resource_names
        };
        let (resource, subresource) = grant.resource.split_once('/').unwrap_or((&grant.resource, ""));
        let scope = match grant.scope {
            kube_grants::Scope::Watched => Where::Watched,
            kube_grants::Scope::Own => Where::Own,
            kube_grants::Scope::Cluster => Where::Cluster,
        };
        let each = |name: &String, verb: &Cow<'static, str>| Self {
            need: Need {
                group: grant.group.to_string(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                verb: verb.to_string(),
                name: name.clone(),
                namespace: String::new(),
            },
            scope,
            why: grant.why.to_string(),
        };
        names
            .iter()
            .flat_map(|name| grant.verbs.iter().map(move |verb| each(name, verb)))
            .collect()
    }
}

/// Logs which of `requirements` are missing, and what they are needed for.
pub async fn report(client: &Client, requirements: &[Requirement], own: &str, watched: &Namespaces) {
    let mut reasons = Vec::new();
    for requirement in requirements {
        for need in requirement.needs(own, watched) {
            reasons.push((need, requirement.why.as_str()));
        }
    }
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

/// Reviews `needs` with the API server and returns those that are denied.
///
/// # Errors
/// When a review request fails.
pub async fn missing(client: &Client, needs: Vec<Need>) -> Result<Vec<Need>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for need in needs {
        let attributes = ResourceAttributes {
            group: Some(need.group.clone()),
            resource: Some(need.resource.clone()),
            subresource: Some(need.subresource.clone()).filter(|subresource| !subresource.is_empty()),
            verb: Some(need.verb.clone()),
            name: Some(need.name.clone()).filter(|name| !name.is_empty()),
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
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            missing.push(need);
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_a_requirement_for_each_verb_and_name() {
        use k8s_openapi::api::apps::v1::Deployment;

        let grant = Grant::of::<Deployment>(Where::Watched, &["get", "update"], "why");
        let texts = |grant: &Grant| -> Vec<String> {
            grant
                .requirements()
                .map(|requirement| requirement.need.to_string())
                .collect()
        };
        let everywhere = "deployments in API group apps in all namespaces";
        assert_eq!(
            texts(&grant),
            [format!("get {everywhere}"), format!("update {everywhere}")]
        );
        let named = grant.on("scale").named(&["a", "b"]);
        assert_eq!(named.resource, "deployments/scale");
        assert_eq!(texts(&named).len(), 4);
        assert_eq!(
            texts(&named).last().map(String::as_str),
            Some("update deployments/scale in API group apps b in all namespaces")
        );
    }

    #[test]
    fn a_requirement_is_a_need_in_each_namespace() {
        let with = |scope| Requirement {
            need: Need {
                resource: "pods".to_owned(),
                verb: "list".to_owned(),
                ..Need::default()
            },
            scope,
            why: "why".to_owned(),
        };
        let texts = |scope, watched: &str| -> Vec<String> {
            let needs = with(scope).needs("own", &watched.parse().unwrap());
            needs.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            texts(Where::Watched, "a,b"),
            ["list pods in namespace a", "list pods in namespace b"]
        );
        assert_eq!(texts(Where::Watched, ""), ["list pods in all namespaces"]);
        assert_eq!(texts(Where::Own, "a,b"), ["list pods in namespace own"]);
        assert_eq!(texts(Where::Cluster, "a,b"), ["list pods in all namespaces"]);
    }
}
