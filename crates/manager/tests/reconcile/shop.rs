//! A small kind and its reconciler.
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, KubeSchema, ResourceExt as _};
use kube_manager::reconcile::{Context, Controller, Error, Outcome, Reconciler};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The spec.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "ShopStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ShopSpec {
    /// Goes into a ConfigMap.
    pub size: u32,
    /// True if there is a second ConfigMap.
    #[serde(default)]
    pub extra: bool,
    /// Nothing is changed.
    #[serde(default)]
    pub paused: bool,
    /// True if the shop is not available.
    #[serde(default)]
    pub closed: bool,
    /// A label that the API server rejects if it is too long.
    #[serde(default)]
    pub label: Option<String>,
    /// Name of a Secret with a password.
    #[serde(default)]
    pub secret: Option<String>,
    /// Bytes of data in a generated Secret. None without.
    #[serde(default)]
    pub bytes: usize,
}

impl Default for ShopSpec {
    fn default() -> Self {
        Self {
            size: 1,
            extra: false,
            paused: false,
            closed: false,
            label: None,
            secret: None,
            bytes: 0,
        }
    }
}

/// The status.
#[derive(KubeSchema, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShopStatus {
    /// The size.
    #[serde(default)]
    pub size: Option<u32>,
    /// The conditions.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
    /// The generation that this is about.
    pub observed_generation: Option<i64>,
}

/// State that a test reads and sets.
#[derive(Clone, Default)]
pub struct Knobs {
    pub factor: u32,
    pub runs: Arc<AtomicUsize>,
    pub cleanup_waits: Arc<AtomicBool>,
}

pub struct Shops(pub Knobs);

pub fn controller(knobs: Knobs) -> Controller<Shops> {
    Controller::new("shop", Shops(knobs))
        .owns::<ConfigMap>("contains the size")
        .owns::<Secret>("contains the generated password")
        .secrets("reads passwords", |shop: &Shop| {
            shop.spec.secret.clone().into_iter().collect()
        })
        .finalizer("example.com/shop")
}

impl Reconciler for Shops {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, context: &Context<Shop>) -> Result<Outcome, Error> {
        self.0.runs.fetch_add(1, SeqCst);
        let (name, spec) = (shop.name_any(), &shop.spec);
        if spec.paused {
            return Ok(Outcome::paused("spec.paused is true"));
        }
        let mut data = json!({ "size": (spec.size * self.0.factor).to_string() });
        if let Some(secret) = &spec.secret {
            let missing = || Error::new("SecretMissing", format!("create Secret {secret} with the key password"));
            let secret = context.secret(secret).await?.ok_or_else(missing)?;
            data["password"] = secret.data.as_ref().unwrap()["password"].0.len().to_string().into();
        }
        if spec.bytes > 0 {
            let login = format!("{name}-login");
            context.create_once(&login, || password(spec.bytes)).await?;
            let is_cached = context.get::<Secret>(&login).is_some();
            let login = context.read::<Secret>(&login).await?.unwrap();
            data["login"] = format!("{} bytes, cached: {is_cached}", login.data.unwrap()["password"].0.len()).into();
        }
        let labels = json!({ "shop": spec.label.clone().unwrap_or_else(|| "none".to_owned()) });
        context.apply(map(&name, &data)).await?;
        context
            .apply_if(spec.extra, || labeled(&format!("{name}-extra"), &labels))
            .await?;
        let outcome = match spec.closed {
            true => Outcome::waiting("Closed", "the shop is closed").available(false, "spec.closed is true"),
            false => Outcome::ready(),
        };
        Ok(outcome.status(json!({ "size": spec.size })))
    }

    async fn cleanup(&self, _: &Shop, _: &Context<Shop>) -> Result<Outcome, Error> {
        match self.0.cleanup_waits.load(SeqCst) {
            true => Ok(Outcome::waiting("Emptying", "customers are leaving")
                .requeue_after(std::time::Duration::from_millis(200))),
            false => Ok(Outcome::ready()),
        }
    }
}

fn map(name: &str, data: &serde_json::Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": data })).unwrap()
}

fn labeled(name: &str, labels: &serde_json::Value) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap()
}

fn password(bytes: usize) -> Secret {
    let text: String = std::iter::repeat_with(|| char::from(b'a' + fastrand::u8(..26)))
        .take(bytes)
        .collect();
    serde_json::from_value(json!({ "stringData": { "password": text } })).unwrap()
}
