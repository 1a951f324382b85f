//! Flags of webhooks.
use std::path::PathBuf;

#[cfg(feature = "flags")]
use crate::options::bind_address;
use crate::{
    certificates::{self, Certificates},
    options::{BindAddress, everywhere},
};

/// The options that users of an operator with webhooks set.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "flags", derive(clap::Args), group(skip))]
pub struct Options {
    /// Address to serve webhooks on; 0 disables the server, for a run outside of the cluster.
    #[cfg_attr(feature = "flags", arg(long, env = "WEBHOOK_BIND_ADDRESS", default_value = ":9443",
        value_name = "ADDRESS", value_parser = bind_address))]
    pub webhook_bind_address: BindAddress,

    /// Directory of the certificate for webhooks; without one the places are searched where OLM, cert-manager and OpenShift
    /// mount it.
    #[cfg_attr(feature = "flags", arg(long, env = "WEBHOOK_CERT_PATH", value_name = "DIRECTORY"))]
    pub webhook_cert_path: Option<PathBuf>,

    /// File of the certificate for webhooks.
    #[cfg_attr(feature = "flags", arg(long, default_value = "tls.crt", value_name = "FILE"))]
    pub webhook_cert_name: String,

    /// File of the private key for webhooks.
    #[cfg_attr(feature = "flags", arg(long, default_value = "tls.key", value_name = "FILE"))]
    pub webhook_cert_key: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            webhook_bind_address: Some(everywhere(9443)),
            webhook_cert_path: None,
            webhook_cert_name: "tls.crt".to_owned(),
            webhook_cert_key: "tls.key".to_owned(),
        }
    }
}

impl Options {
    /// The certificate that the options name, or the one that is [mounted](Certificates::find).
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn certificates(&self) -> Result<Certificates, certificates::Error> {
        match &self.webhook_cert_path {
            Some(folder) => Certificates::from_files(
                folder.join(&self.webhook_cert_name),
                folder.join(&self.webhook_cert_key),
            ),
            None => Certificates::find(),
        }
    }
}
