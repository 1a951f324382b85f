//! Flags of webhooks.
use std::{net::SocketAddr, path::PathBuf};

use crate::{
    certificates::{self, Certificates},
    options::everywhere,
};

/// What users of an operator with webhooks set.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "flags", derive(clap::Args), group(skip))]
pub struct Options {
    /// Address to serve webhooks on.
    #[cfg_attr(feature = "flags", arg(long, default_value = ":9443", value_name = "ADDRESS", value_parser = address))]
    pub webhook_bind_address: SocketAddr,

    /// Directory of the certificate for webhooks; without one the places are searched where OLM, cert-manager and OpenShift
    /// mount it.
    #[cfg_attr(feature = "flags", arg(long, value_name = "DIRECTORY"))]
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
            webhook_bind_address: everywhere(9443),
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

#[cfg(feature = "flags")]
fn address(text: &str) -> Result<SocketAddr, String> {
    let address = crate::options::bind_address(text)?;
    address
        .ok_or_else(|| "webhooks cannot be disabled: the API server would refuse what they are asked about".to_owned())
}
