//! Location of the server for the bundle's catalog.

use super::pod::PodOptions;
use crate::observe::observation::OlmState;

/// Location of the catalog server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServeFrom {
    /// In a pod with the image that OLM unpacks bundles with, which the nodes can pull; in this process if that image is
    /// unknown.
    Auto,
    /// In this process, at an address of this host: `host`, `host:port`, or guessed.
    Host(Option<String>),
    /// In a pod.
    Pod(PodOptions),
}

impl ServeFrom {
    /// Decides [`ServeFrom::Auto`].
    pub fn decide(&self, olm: &OlmState, pull_secret: Option<&str>) -> ServeFrom {
        match (self, &olm.opm_image) {
            (ServeFrom::Auto, Some(image)) => ServeFrom::Pod(PodOptions {
                image: image.clone(),
                pull_policy: "IfNotPresent".into(),
                service_account: None,
                pull_secret: pull_secret.map(str::to_owned),
            }),
            (ServeFrom::Auto, None) => ServeFrom::Host(None),
            (decided, _) => decided.clone(),
        }
    }
}
