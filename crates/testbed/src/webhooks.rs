//! Webhooks of a process on this machine.
use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::Path,
};

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
};
use rcgen::CertifiedKey;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{Error, definitions};

/// The address and certificate that [`ControlPlane::install_webhooks`](crate::ControlPlane::install_webhooks) has configured. Dropping
/// it removes the certificate.
#[derive(Debug)]
pub struct LocalWebhooks {
    address: SocketAddr,
    certificates: tempfile::TempDir,
}

impl LocalWebhooks {
    /// The address that the process must listen on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The directory with the files `tls.crt` and `tls.key` for the process.
    pub fn certificates(&self) -> &Path {
        self.certificates.path()
    }
}

pub(crate) async fn install(client: &Client, objects: Vec<Value>) -> Result<LocalWebhooks, Error> {
    let certificates = tempfile::tempdir().map_err(Error::io("create a directory", &std::env::temp_dir()))?;
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(Error::io("find a port", Path::new("127.0.0.1:0")))?;
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    for (name, text) in [("tls.crt", cert.pem()), ("tls.key", signing_key.serialize_pem())] {
        let path = certificates.path().join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
    }
    let authority = json!(ByteString(cert.pem().into_bytes()));
    let mut kinds: Vec<CustomResourceDefinition> = Vec::new();
    for mut object in objects {
        redirect(&mut object, address, &authority);
        match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
            "CustomResourceDefinition" => kinds.push(typed(object)?),
            "MutatingWebhookConfiguration" => apply(client, typed::<MutatingWebhookConfiguration>(object)?).await?,
            "ValidatingWebhookConfiguration" => {
                apply(client, typed::<ValidatingWebhookConfiguration>(object)?).await?;
            }
            kind => return Err(Error::NoWebhook(kind.to_owned())),
        }
    }
    definitions::install(client, kinds).await?;
    Ok(LocalWebhooks { address, certificates })
}

/// Replaces references to Services by URLs of the process.
fn redirect(value: &mut Value, address: SocketAddr, authority: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(config) = fields.get_mut("clientConfig")
                && let Some(service) = config.get("service")
            {
                let path = service.get("path").and_then(Value::as_str).unwrap_or_default();
                *config = json!({ "url": format!("https://{address}{path}"), "caBundle": authority });
            }
            fields
                .values_mut()
                .for_each(|value| redirect(value, address, authority));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, address, authority)),
        _ => {}
    }
}

fn typed<K: DeserializeOwned>(object: Value) -> Result<K, Error> {
    serde_json::from_value(object).map_err(|error| Error::Request {
        what: "read a webhook configuration".to_owned(),
        source: Box::new(kube::Error::SerdeError(error)),
    })
}

async fn apply<K>(client: &Client, object: K) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let (name, kind) = (object.name_any(), K::kind(&()));
    let params = PatchParams::apply("kube-testbed").force();
    let applied = Api::<K>::all(client.clone())
        .patch(&name, &params, &Patch::Apply(&object))
        .await;
    applied
        .map(drop)
        .map_err(Error::request(format!("apply {kind} {name}")))
}
