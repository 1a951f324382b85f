//! The way from a pod, or a desk, to the API server.
//!
//! A kubeconfig is read with this crate's YAML reader: the client library's would add a second one to every pod.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};

use super::Error;
use olmkit::yaml;

/// Kubeconfig files have a few kilobytes.
const LIMIT: u64 = 4 << 20;

/// The given kubeconfig, else those of `KUBECONFIG`, else the pod's service account.
pub(super) async fn config(named: Option<&Path>) -> Result<kube::Config, Error> {
    let variable = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let paths: Vec<PathBuf> = match named {
        Some(path) => vec![path.to_owned()],
        // As kubectl does: of several files some may be missing.
        None => std::env::split_paths(&variable).filter(|path| path.is_file()).collect(),
    };
    if paths.is_empty() {
        return kube::Config::incluster()
            .map_err(|error| Error::NoCluster(format!("{error}; outside a pod, give --kubeconfig or KUBECONFIG")));
    }
    let mut merged = Kubeconfig::default();
    for path in &paths {
        merged = merged
            .merge(read(path)?)
            .map_err(|error| Error::NoCluster(format!("{}: {error}", path.display())))?;
    }
    kube::Config::from_custom_kubeconfig(merged, &KubeConfigOptions::default())
        .await
        .map_err(|error| Error::NoCluster(error.to_string()))
}

/// A kubeconfig with absolute file paths: they are relative to its own directory.
fn read(path: &Path) -> Result<Kubeconfig, Error> {
    let unusable = |reason: String| Error::NoCluster(format!("{}: {reason}", path.display()));
    let size = std::fs::metadata(path).map_err(Error::file("read", path))?.len();
    if size > LIMIT {
        return Err(unusable(format!("the kubeconfig is too large: {size} bytes")));
    }
    let bytes = std::fs::read(path).map_err(Error::file("read", path))?;
    let value = yaml::parse(&bytes)
        .and_then(|node| node.to_json())
        .map_err(|error| unusable(error.to_string()))?;
    let mut kubeconfig: Kubeconfig = serde_json::from_value(value).map_err(|error| unusable(error.to_string()))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let absolute = |file: &mut Option<String>| {
        if let Some(file) = file {
            *file = directory.join(&*file).to_string_lossy().into_owned();
        }
    };
    for cluster in kubeconfig
        .clusters
        .iter_mut()
        .filter_map(|named| named.cluster.as_mut())
    {
        absolute(&mut cluster.certificate_authority);
    }
    for user in kubeconfig
        .auth_infos
        .iter_mut()
        .filter_map(|named| named.auth_info.as_mut())
    {
        absolute(&mut user.client_certificate);
        absolute(&mut user.client_key);
        absolute(&mut user.token_file);
        // A bare name is looked up in PATH.
        if let Some(exec) = &mut user.exec
            && exec
                .command
                .as_deref()
                .is_some_and(|command| Path::new(command).file_name() != Some(OsStr::new(command)))
        {
            absolute(&mut exec.command);
        }
    }
    Ok(kubeconfig)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_relative_to_the_kubeconfig() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
                    clusters: [{name: a, cluster: {server: 'https://a.test:6443', certificate-authority: ca.crt}}]\n\
                    users: [{name: a, user: {client-certificate: /pki/client.crt, tokenFile: token, exec: {command: aws}}}]\n\
                    contexts: [{name: a, context: {cluster: a, user: a, namespace: demo}}]\n";
        std::fs::write(&path, text).unwrap();
        let kubeconfig = read(&path).unwrap();
        let inside = |name: &str| Some(directory.path().join(name).to_str().unwrap().to_owned());
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.certificate_authority, inside("ca.crt"));
        let user = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!(user.client_certificate.as_deref(), Some("/pki/client.crt"));
        assert_eq!(user.token_file, inside("token"));
        assert_eq!(user.exec.as_ref().unwrap().command.as_deref(), Some("aws"));

        std::fs::write(&path, "clusters: {}\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("config"));
    }
}
