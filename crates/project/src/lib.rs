//! Renders `config/` for a Rust operator from its own types.
//!
//! A [`Project`] collects an operator's existing declarations: its kinds ([`Api`]), its permission table
//! ([`rbac::Grant`](crate::rbac::Grant)), the start options of its process ([`Manager`]) and its catalog entry
//! ([`Package`], the content of `config/package.yaml`). [`Project::render`] converts them to plain YAML: CRDs, RBAC,
//! Deployment, samples and the base of the ClusterServiceVersion with its descriptors. No kustomize is needed to read
//! the result, because the objects have their final names. `kubectl apply -k config/default` installs it, and `olmkit
//! generate bundle --input-dir config` makes a bundle of the same objects.
//!
//! ```
//! use olmkit_project::{Api, Manager, Package, Project};
//! use olmkit_project::rbac::{Grant, Scope};
//! use k8s_openapi::api::coordination::v1::Lease;
//! use kube::CustomResource;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// The desired greeting.
//! #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, doc = "A greeting.")]
//! struct GreetingSpec {
//!     /// Name to greet.
//!     #[schemars(extend("x-olm-descriptor" = true))]
//!     name: String,
//! }
//!
//! let package = Package::parse("displayName: Greeter\ndescription: Greets.\n")?;
//! let files = Project::new("greeter", "0.0.1", "example.com/greeter:v0.0.1", package)
//!     .api(Api::of::<Greeting>()?.sample(&Greeting::new("world", GreetingSpec { name: "world".into() }))?)
//!     .grants([
//!         Grant::of::<Greeting>(Scope::Watched, ["get", "list", "watch"], "it is what the operator acts on"),
//!         Grant::of::<Lease>(Scope::Own, ["get", "create", "update"], "--leader-elect"),
//!     ])
//!     .manager(Manager::default().arg("--leader-elect"))
//!     .render()?;
//! assert!(files.text("crd/bases/example.com_greetings.yaml").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod rbac;
pub mod schema;

mod api;
mod base;
mod files;
mod manager;
mod package;
mod render;
mod webhooks;

use std::path::PathBuf;

pub use api::{Api, Resource};
pub use base::base;
pub use files::Files;
pub use manager::{Env, Manager};
pub use package::{InstallMode, Link, Maintainer, Package, Upgrade};
pub use render::grants_table;
pub use webhooks::{WEBHOOK_PORT, Webhook};

use crate::rbac::Grant;

/// The annotation of a ClusterRoleBinding whose rules need no cluster scope: without OLM the operator watches all
/// namespaces and so its role is bound in the whole cluster, but in a bundle the rules become `permissions`, which OLM
/// grants only in the watched namespaces. The value is `namespaced`.
pub const PERMISSIONS_ANNOTATION: &str = olmkit_base::object::PERMISSIONS_ANNOTATION;

/// Why `config/` could not be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kind's definition.
    #[error(transparent)]
    Crd(#[from] schema::Error),
    /// A setting that is wrong or missing.
    #[error("{setting}: {reason}")]
    Setting {
        /// The setting, for example `package.yaml: icon`.
        setting: String,
        /// The reason and the fix.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A YAML document that cannot be read or printed.
    #[error(transparent)]
    Yaml(#[from] olmkit_yaml::Error),
    /// A value that does not serialise.
    #[error("cannot serialise {object}: {source}")]
    Serialise {
        /// Kind and name.
        object: String,
        /// serde's error.
        source: serde_json::Error,
    },
}

/// Everything about an operator that its manifests are rendered from.
#[derive(Debug, Clone)]
pub struct Project {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) namespaced: bool,
    pub(crate) version: String,
    pub(crate) image: String,
    pub(crate) package: Package,
    pub(crate) apis: Vec<Api>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) manager: Manager,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) extra: Vec<(PathBuf, Vec<serde_json::Value>)>,
    pub(crate) scorecard: bool,
    pub(crate) aggregated: bool,
}

impl Project {
    /// A project without kinds. `name` is the package and the prefix of every object, `image` the operator's image.
    /// The namespace is `<name>-system` unless [`Project::namespace`] sets another.
    #[must_use]
    pub fn new(name: &str, version: &str, image: &str, package: Package) -> Self {
        Self {
            name: name.to_owned(),
            namespace: format!("{name}-system"),
            namespaced: false,
            version: version.to_owned(),
            image: image.to_owned(),
            package,
            apis: Vec::new(),
            grants: Vec::new(),
            manager: Manager::default(),
            webhooks: Vec::new(),
            extra: Vec::new(),
            scorecard: false,
            aggregated: false,
        }
    }

    /// The namespace that the operator runs in when it is installed without OLM.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Sets if the operator watches only the namespace that it runs in. Permissions on watched namespaces then become a Role.
    #[must_use]
    pub fn namespaced(mut self, namespaced: bool) -> Self {
        self.namespaced = namespaced;
        self
    }

    /// Adds a kind.
    #[must_use]
    pub fn api(mut self, api: Api) -> Self {
        self.apis.push(api);
        self
    }

    /// Adds lines of the permission table.
    #[must_use]
    pub fn grants(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.grants.extend(grants);
        self
    }

    /// Sets the start options of the operator's process.
    #[must_use]
    pub fn manager(mut self, manager: Manager) -> Self {
        self.manager = manager;
        self
    }

    /// Adds an admission webhook. With it, or with an API that is [converted](Api::converted_at), the Deployment has
    /// the port [`WEBHOOK_PORT`] and a volume with a certificate, and `config/` contains a Service and cert-manager's
    /// objects. The operator finds the certificate with `kube_manager::certificates::Certificates::find`, also under
    /// OLM.
    #[must_use]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhooks.push(webhook);
        self
    }

    /// Returns true if the operator serves webhooks: for admission, or for the conversion of an API that was added.
    #[must_use]
    pub fn serves_webhooks(&self) -> bool {
        !self.webhooks.is_empty() || self.apis.iter().any(|api| api.conversion_path.is_some())
    }

    /// Adds objects of other kinds (a Service for metrics, a PriorityClass): `file` is the path below `config/`, in a
    /// separate directory that `default/kustomization.yaml` then includes.
    #[must_use]
    pub fn objects(mut self, file: impl Into<PathBuf>, objects: Vec<serde_json::Value>) -> Self {
        self.extra.push((file.into(), objects));
        self
    }

    /// Adds the roles for users of each kind to Kubernetes' own roles: users with `admin`, `edit` or `view` in a namespace get the
    /// same permission on the kinds. Without this, a cluster administrator binds the roles.
    #[must_use]
    pub fn aggregated(mut self) -> Self {
        self.aggregated = true;
        self
    }

    /// Adds a configuration for `operator-sdk scorecard` with its own six tests.
    #[must_use]
    pub fn scorecard(mut self) -> Self {
        self.scorecard = true;
        self
    }

    /// Renders everything. The same input gives the same bytes.
    ///
    /// # Errors
    /// When a schema has no structural form, or a setting is missing or wrong.
    pub fn render(&self) -> Result<Files, Error> {
        render::render(self)
    }
}
