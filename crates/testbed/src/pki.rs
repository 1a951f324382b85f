//! Certificates and keys: a certificate authority, the server's certificate, client certificates, the service account
//! key.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

/// The files of a control plane's public key infrastructure.
#[derive(Debug)]
pub(crate) struct Pki {
    directory: PathBuf,
}

/// Names of a client certificate: user and group.
const ADMIN: (&str, &str) = ("admin", "system:masters");
const CONTROLLER_MANAGER: (&str, &str) = ("system:kube-controller-manager", "system:kube-controller-manager");

impl Pki {
    /// Writes a new authority and all certificates that it signs into `directory`.
    pub(crate) fn generate(directory: &Path) -> Result<Self, Error> {
        fs::create_dir_all(directory).map_err(Error::io("create the certificate directory", directory))?;
        let pki = Self {
            directory: directory.to_owned(),
        };

        let key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.distinguished_name = distinguished_name("kube-testbed-ca", None);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = authority.self_signed(&key)?;
        pki.write("ca.crt", &certificate.pem())?;
        pki.write("ca.key", &key.serialize_pem())?;
        let issuer = Issuer::new(authority, key);

        let server_names = [
            "localhost",
            "127.0.0.1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let mut server = CertificateParams::new(server_names.map(String::from))?;
        server.distinguished_name = distinguished_name("kube-apiserver", None);
        pki.sign("apiserver", server, &issuer)?;
        for (file, (user, group)) in [("admin", ADMIN), ("controller-manager", CONTROLLER_MANAGER)] {
            let mut client = CertificateParams::default();
            client.distinguished_name = distinguished_name(user, Some(group));
            pki.sign(file, client, &issuer)?;
        }
        let service_accounts = KeyPair::generate()?;
        pki.write("service-accounts.key", &service_accounts.serialize_pem())?;
        pki.write("service-accounts.pub", &service_accounts.public_key_pem())?;
        Ok(pki)
    }

    /// The path of one of the files.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.join(file)
    }

    fn sign(&self, file: &str, mut params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<(), Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, issuer)?;
        self.write(&format!("{file}.crt"), &certificate.pem())?;
        self.write(&format!("{file}.key"), &key.serialize_pem())
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        let path = self.path(file);
        fs::write(&path, text).map_err(Error::io("write", &path))
    }
}

fn distinguished_name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}
