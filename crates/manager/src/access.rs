//! Permission check at start.
//!
//! Without it, a missing permission shows only when an object needs it, as a forbidden request in the log. Every
//! authenticated user may review its own access, so the check needs no permission.
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};

/// A permission that the operator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
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
