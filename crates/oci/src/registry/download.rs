//! Downloads of single files, such as the manifests of a release.

use reqwest::Url;
use reqwest::redirect::Policy;

use super::certificates;
use super::endpoint::{follow, http_client};
use super::{Options, error::Error};

/// A file could not be downloaded.
#[derive(Debug, thiserror::Error)]
#[error("cannot download {url}: {problem}")]
pub struct DownloadError {
    url: String,
    problem: String,
}

/// Downloads a file of at most `limit` bytes. Redirects from HTTPS to HTTP are rejected.
///
/// # Errors
/// [`DownloadError`] with the URL and the reason.
pub async fn download(url: &str, limit: usize) -> Result<Vec<u8>, DownloadError> {
    get(url, limit).await.map_err(|problem| DownloadError {
        url: url.to_owned(),
        problem,
    })
}

async fn get(url: &str, limit: usize) -> Result<Vec<u8>, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    let host = match (parsed.host_str(), parsed.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => return Err("the URL has no host".to_owned()),
    };
    let options = Options::default();
    let client = http_client(&host, &options, false, Policy::custom(follow), Some(options.answer()));
    let failed = |error: &reqwest::Error| format!("{host} {}", certificates::explain(error, &host).0);
    let mut response = client
        .map_err(|error: Error| error.to_string())?
        .get(parsed)
        .send()
        .await
        .map_err(|error| failed(&error))?;
    if !response.status().is_success() {
        return Err(format!("{host} answered {}", response.status()));
    }
    let mut content = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if content.len() + chunk.len() > limit {
            return Err(format!("the file is larger than {limit} bytes"));
        }
        content.extend_from_slice(&chunk);
    }
    Ok(content)
}
