//! The objects that operator-controller applies for a bundle.

use std::sync::Arc;

use serde_json::{Value, json};

use super::config::{Config, ConfigError};
use super::provider::{Gates, Unsupported, complaints, support};
use super::read::Bundle;
use super::validators::Complaint;
use olmkit_base::limits;
use olmkit_base::object::SetAt as _;
use olmkit_bundle::install::{CertificateProvider, ConversionError, Plan, Style, is_namespaced_for_olm_v1};
use olmkit_bundle::kinds;
use olmkit_go::structs::encode::encode_with;
use olmkit_go::structs::newer;

/// Provider of the webhooks' certificates.
pub type Certificates = Option<CertificateProvider>;

/// Options for installing a bundle.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The operator's namespace, `spec.namespace` of the ClusterExtension.
    pub namespace: String,
    /// The configuration, `spec.config.inline`. Null for none.
    pub config: Value,
    /// Provider of the webhooks' certificates.
    pub certificates: Certificates,
    /// Features that operator-controller supports.
    pub gates: Gates,
}

impl Options {
    /// As the experimental manifests install a bundle into a namespace, with cert-manager and no configuration.
    #[must_use]
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            config: Value::Null,
            certificates: Some(CertificateProvider::CertManager),
            gates: Gates::experimental(),
        }
    }
}

/// Why operator-controller applies nothing. The messages are its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The bundle contains a part that OLM v1 does not support.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// It has webhooks, and no provider for their certificates.
    #[error("unsupported bundle: webhookDefinitions are not supported: certificate provider is nil")]
    NoCertificates,
    /// The bundle does not accept the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The checks complain.
    #[error("{}", .0.iter().map(|complaint| complaint.message.as_str()).collect::<Vec<_>>().join("\n"))]
    Complaints(Vec<Complaint>),
    /// A definition that no webhook can convert.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// Each Deployment gets the annotations of the ClusterServiceVersion, and the API server takes no such Deployment.
    #[error(
        "the annotations of the ClusterServiceVersion, repeated in its {deployments} Deployments, are larger than {}",
        limits::BUNDLE_BYTES.shown()
    )]
    Annotations {
        /// Their number.
        deployments: usize,
    },
    /// An object of a kind that releases up to 1.8 reject here.
    #[error("bundle contains unsupported resource: Name: {name}, Kind: {kind}")]
    Kind {
        /// Its name.
        name: String,
        /// Its kind.
        kind: String,
    },
}

/// The objects in the order in which the generators of operator-controller create them. It labels them when it applies
/// them: `olm.operatorframework.io/owner-kind` and `owner-name`.
///
/// # Errors
/// operator-controller rejects the bundle or the configuration.
pub fn render(bundle: &Bundle, options: &Options) -> Result<Vec<Value>, RenderError> {
    support(
        bundle,
        Gates {
            webhooks: true,
            ..options.gates
        },
    )?;
    let webhooks = bundle
        .csv
        .value
        .pointer("/spec/webhookdefinitions")
        .and_then(Value::as_array);
    if webhooks.is_some_and(|webhooks| !webhooks.is_empty()) {
        support(bundle, options.gates)?;
        if options.certificates.is_none() {
            return Err(RenderError::NoCertificates);
        }
    }
    objects(bundle, options)
}

/// As [`render`], also for webhooks without a certificate provider.
///
/// # Errors
/// As [`render`].
pub fn objects(bundle: &Bundle, options: &Options) -> Result<Vec<Value>, RenderError> {
    generate(bundle, options, &checked_config(bundle, options)?)
}

/// Kind and name of each of the [`objects`]. Does not copy schemas, the largest part of a bundle.
pub(super) fn kinds_and_names(bundle: &Bundle, options: &Options) -> Result<Vec<(String, String)>, RenderError> {
    let config = checked_config(bundle, options)?;
    let mut named = bundle.clone();
    for definition in &mut named.definitions {
        definition.value = Arc::new(without_schemas(&definition.value));
    }
    let objects = generate(&named, options, &config)?;
    let text = |object: &Value, pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let identity = |object| (text(object, "/kind"), text(object, "/metadata/name"));
    Ok(objects.iter().map(identity).collect())
}

/// The parts of a CRD that decide whether it can be converted.
fn without_schemas(definition: &Value) -> Value {
    json!({
        "kind": definition.get("kind"),
        "metadata": {"name": definition.pointer("/metadata/name")},
        "spec": {"preserveUnknownFields": definition.pointer("/spec/preserveUnknownFields")},
    })
}

/// The configuration for a bundle that OLM v1 takes.
fn checked_config(bundle: &Bundle, options: &Options) -> Result<Config, RenderError> {
    support(bundle, options.gates)?;
    let config = if options.gates.single_own_namespace || !options.config.is_null() {
        Config::check(
            &options.config,
            &bundle.install_modes(),
            &options.namespace,
            options.gates,
        )?
    } else {
        Config::default()
    };
    let complaints = complaints(bundle, options.gates);
    if !complaints.is_empty() {
        return Err(RenderError::Complaints(complaints));
    }
    Ok(config)
}

/// Refuses annotations that would fill the memory once each Deployment has them.
fn bounded(csv: &Value) -> Result<(), RenderError> {
    let annotations = csv.pointer("/metadata/annotations").and_then(Value::as_object);
    let bytes = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    let bytes: usize = annotations.into_iter().flatten().map(bytes).sum();
    let deployments = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let deployments = deployments.map_or(0, Vec::len);
    if bytes.saturating_mul(deployments) > limits::BUNDLE_BYTES.count() {
        return Err(RenderError::Annotations { deployments });
    }
    Ok(())
}

fn generate(bundle: &Bundle, options: &Options, config: &Config) -> Result<Vec<Value>, RenderError> {
    bounded(&bundle.csv.value)?;
    let watched: Vec<String> = config.watch_namespace.iter().cloned().collect();
    let plan = Plan {
        csv: &bundle.csv.value,
        namespace: &options.namespace,
        watched: &watched,
        style: Style::OlmV1,
        certificates: options.certificates,
        config: config.deployment.as_ref(),
    };
    let mut objects = plan.service_accounts([]);
    objects.extend(plan.roles(watched.iter().map(String::as_str)));
    objects.extend(plan.cluster_roles());
    let definitions = plan.definitions(bundle.definitions.iter().map(|definition| &*definition.value))?;
    objects.extend(definitions);
    let mut printed: Vec<Value> = objects.iter().map(as_go_prints).collect();
    for object in &bundle.others {
        let release = (1, options.gates.minor, 0);
        if !kinds::is_accepted(object.kind(), kinds::Program::OlmV1, release) {
            let (name, kind) = (object.name().to_owned(), object.kind().to_owned());
            return Err(RenderError::Kind { name, kind });
        }
        printed.push(plan.placed(&object.value, is_namespaced_for_olm_v1(object.kind())));
    }
    let mut objects = plan.deployments();
    for mut configuration in plan.validating_webhooks().into_iter().chain(plan.mutating_webhooks()) {
        // It is cluster-scoped, but OLM v1 sets a namespace, which the API server ignores.
        configuration.set_at(&["metadata", "namespace"], options.namespace.clone().into());
        objects.push(configuration);
    }
    objects.extend(plan.webhook_services());
    printed.extend(objects.iter().map(as_go_prints));
    printed.extend(plan.certificate_objects());
    Ok(printed)
}

/// An object in its Go type's printed form, without the status, which clients do not apply.
fn as_go_prints(object: &Value) -> Value {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let key = match kind {
        "CustomResourceDefinition" => "v1.CustomResourceDefinition",
        other => other,
    };
    let mut printed = encode_with(newer(), object, key);
    if let Some(fields) = printed.as_object_mut() {
        fields.remove("status");
    }
    if printed.get("metadata").is_none() {
        printed.set_at(&["metadata"], json!({}));
    }
    printed
}
