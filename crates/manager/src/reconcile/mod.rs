//! Reconcilers: functions that apply what an object asks for. Everything else is done here.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{CustomResource, ResourceExt as _, api::ObjectMeta};
//! use kube_manager::{
//!     Manager,
//!     reconcile::{Context, Controller, Error, Outcome, Reconciler},
//! };
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
//! # pub struct GreetingSpec { name: String }
//!
//! struct Greeter;
//!
//! impl Reconciler for Greeter {
//!     type Object = Greeting;
//!
//!     async fn reconcile(&self, greeting: &Greeting, context: &Context<Greeting>) -> Result<Outcome, Error> {
//!         let text = format!("Hello, {}!", greeting.spec.name);
//!         context
//!             .apply(ConfigMap {
//!                 metadata: ObjectMeta { name: Some(greeting.name_any()), ..ObjectMeta::default() },
//!                 data: Some([("text".to_owned(), text)].into()),
//!                 ..ConfigMap::default()
//!             })
//!             .await?;
//!         Ok(Outcome::ready())
//!     }
//! }
//!
//! fn controller() -> Controller<Greeter> {
//!     Controller::new("greeting", Greeter).owns::<ConfigMap>("contains the greeting")
//! }
//!
//! # async fn run() -> Result<(), kube_manager::manager::Error> {
//! let manager = Manager::builder("greeter").start().await?;
//! manager.add(controller());
//! manager.run().await
//! # }
//! ```
//!
//! A reconcile goes through these steps:
//!
//! 1. The [finalizer](Controller::finalizer) is added, or, on deletion, [`cleanup`](Reconciler::cleanup) runs and the finalizer is
//!    removed.
//! 2. [`reconcile`](Reconciler::reconcile) runs. [`Context::apply`] adds owner reference, namespace and label, and sends a
//!    request only if a field differs. A child that belongs to another owner is an error.
//! 3. After success, children that the reconcile has not applied are deleted.
//! 4. The conditions `Ready`, `Available`, `Progressing` and `Degraded` and `observedGeneration` are written if they differ,
//!    provided the kind's status has these fields. While other objects wait, the status of one that was written comes last.
//!
//! Events report children that are created, updated, reverted and deleted, conflicts, failures and recovery.
//!
//! [`Context::recording`] is for unit tests: it needs no API server and records the applied objects.
mod adopt;
mod applied;
mod cached;
mod context;
mod controller;
mod object;
mod observe;
mod outcome;
mod recording;
mod run;
mod shared;
mod status;
mod store;
mod taken;
mod unreadable;
mod writing;
mod written;

use std::{fmt::Debug, future::Future};

use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};

pub use crate::apply::{Change, Conflict, Error, ErrorKind, FieldChange};
pub use crate::conditions::State;
pub use applied::Applied;
pub(crate) use cached::{CachedObject, Projection, is_relevant, lost_status, unpacked};
pub use context::Context;
pub(crate) use controller::Starting;
pub use controller::{AddController, Controller};
pub use kube_grants::{Grant, Scope};
pub use object::object;
pub use outcome::Outcome;
pub(crate) use run::{leave_alone, reconcile};
pub(crate) use shared::Shared;
pub(crate) use store::Secrets;
pub(crate) use taken::TakenNames;
pub(crate) use unreadable::Unreadable;
pub(crate) use written::OwnWrites;

/// A kind that can be reconciled, applied or watched. It is implemented for each kind whose Rust type is known.
pub trait Object:
    Resource<DynamicType = (), Scope: crate::manager::Scope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope: crate::manager::Scope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Applies what the objects of one kind ask for. See the [module](self).
pub trait Reconciler: Send + Sync + 'static {
    /// The kind.
    type Object: Object;

    /// Brings the cluster in line with `object`. It runs when the object or one of its children changes. It must not depend
    /// on the kind of change. `object` has no `managedFields`.
    fn reconcile(
        &self,
        object: &Self::Object,
        context: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Cleans up before the object is deleted, if the controller has a [finalizer](Controller::finalizer). Children that
    /// are owned need no cleanup. [`Outcome::waiting`] keeps the finalizer.
    fn cleanup(
        &self,
        object: &Self::Object,
        context: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send {
        let _ = (object, context);
        async { Ok(Outcome::ready()) }
    }

    /// Completes the status after each reconcile, with its result. The outcome is written in the place of that of the reconcile.
    /// After an error its readiness does not count, but its status fields, further conditions and [`Outcome::available`] do.
    ///
    /// It is for operators whose status must be true after an error too.
    fn report(
        &self,
        object: &Self::Object,
        context: &Context<Self::Object>,
        result: &Result<Outcome, Error>,
    ) -> Option<Outcome> {
        let _ = (object, context, result);
        None
    }
}
