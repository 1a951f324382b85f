//! A self-check at start: may the operator do what it needs to do?
//!
//! A missing right otherwise shows only when some object needs it, as one refused request in a log. Every authenticated
//! user may ask about itself, so the check needs no right of its own.
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};

/// One thing that an operator needs to do.
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
        match self.namespace.as_str() {
            "" => write!(f, " in all namespaces"),
            namespace => write!(f, " in namespace {namespace}"),
        }
    }
}

/// Asks the API server about each of `needs` and returns those that it would refuse.
///
/// # Errors
/// When the API server cannot be asked.
pub async fn missing(client: &Client, needs: Vec<Need>) -> Result<Vec<Need>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for need in needs {
        let attributes = ResourceAttributes {
            group: Some(need.group.clone()),
            resource: Some(need.resource.clone()),
            subresource: Some(need.subresource.clone()).filter(|subresource| !subresource.is_empty()),
            verb: Some(need.verb.clone()),
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
