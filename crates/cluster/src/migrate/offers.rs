//! Package contents of ClusterCatalogs, as catalogd serves them. Requests go through the API server's service proxy, so
//! that this machine needs no access to the cluster's network.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use olmkit::limits::{CATALOG_BYTES, CATALOG_FILE};
use olmkit::olmv1::migrate::{Offer, Offered};
use serde::Deserialize;
use serde_json::Value;

use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;

/// Time limit for a catalog.
const CATALOG_LIMIT: Duration = Duration::from_secs(120);

/// Attempts for each catalog. Only the leader of several catalogd pods has the content, and the Service may select any
/// pod.
const ATTEMPTS: u32 = 6;

/// By package.
pub(super) type Offers = BTreeMap<String, Offered>;

/// Queries every ClusterCatalog for some packages. `None` if the cluster does not serve ClusterCatalogs.
///
/// # Errors
/// [`Error::Request`] when the API server does not answer. A catalog that does not is noted in the result.
pub(super) async fn read(cluster: &Cluster, packages: &[&str]) -> Result<Option<Offers>, Error> {
    let kind = kinds::cluster_catalog();
    if cluster.kind_of(&kind.api_version(), &kind.kind).await?.is_none() {
        return Ok(None);
    }
    let mut offers: Offers = packages
        .iter()
        .map(|package| ((*package).to_owned(), Offered::default()))
        .collect();
    let catalogs = match cluster.list(kind, None, None).await {
        Err(error) if error.code() == Some(403) => {
            unknown(&mut offers, &error.to_string());
            return Ok(Some(offers));
        }
        listed => listed?,
    };
    for catalog in catalogs {
        // OLM v1 takes nothing from these either.
        if text(&catalog, "/spec/availabilityMode") == "Unavailable" {
            continue;
        }
        let name = text(&catalog, "/metadata/name");
        match tokio::time::timeout(CATALOG_LIMIT, ask(cluster, &catalog, &offers)).await {
            Ok(Ok(found)) => {
                for (package, offer) in found {
                    offers.entry(package).or_default().by.push(offer);
                }
            }
            Ok(Err(problem)) => unknown(&mut offers, &format!("ClusterCatalog {name}: {problem}")),
            Err(_) => {
                let seconds = CATALOG_LIMIT.as_secs();
                unknown(
                    &mut offers,
                    &format!("ClusterCatalog {name}: not read within {seconds} s"),
                );
            }
        }
    }
    Ok(Some(offers))
}

fn unknown(offers: &mut Offers, problem: &str) {
    for offered in offers.values_mut() {
        offered.unknown.push(problem.to_owned());
    }
}

/// The contents of one catalog for the packages.
async fn ask(cluster: &Cluster, catalog: &Value, packages: &Offers) -> Result<BTreeMap<String, Offer>, String> {
    if !catalog.is_true("Serving") {
        return Err("it is not served yet".to_owned());
    }
    let base = text(catalog, "/status/urls/base");
    let path = path_of(base).ok_or_else(|| format!("its address {base:?} is not that of a Service"))?;
    let mut attempt = 1;
    let content = loop {
        match cluster
            .open(
                &format!("the content of ClusterCatalog {}", text(catalog, "/metadata/name")),
                &path,
            )
            .await
        {
            Err(error) if error.is_not_found() && attempt < ATTEMPTS => attempt += 1,
            answer => break answer.map_err(|error| error.to_string())?,
        }
    };
    let mut found = CatalogOffers {
        catalog: text(catalog, "/metadata/name"),
        packages,
        offers: BTreeMap::new(),
    };
    found.read(content).await?;
    Ok(found.offers)
}

/// The path below which the API server forwards to the Service in a URL: `https://NAME.NAMESPACE.svc/…`.
fn path_of(base: &str) -> Option<String> {
    let (scheme, rest) = base.split_once("://")?;
    let default_port = match scheme {
        "https" => "443",
        "http" => "80",
        _ => return None,
    };
    let (authority, path) = rest.split_once('/')?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, default_port));
    let mut labels = host.split('.');
    let (name, namespace) = (labels.next()?, labels.next()?);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_label =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_segment = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !text.is_empty() && !matches!(text, "." | "..") && text.bytes().all(is_plain)
    };
    let path = path.trim_end_matches('/');
    let is_sound = labels.next() == Some("svc") && is_port && is_label(name) && is_label(namespace);
    (is_sound && path.split('/').all(is_segment))
        .then(|| format!("/api/v1/namespaces/{namespace}/services/{scheme}:{name}:{port}/proxy/{path}/api/v1/all"))
}

/// Results for the packages in a catalog.
struct CatalogOffers<'c> {
    catalog: &'c str,
    packages: &'c Offers,
    offers: BTreeMap<String, Offer>,
}

/// Fields common to all blobs.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    package: String,
}

/// The properties of a bundle.
#[derive(Deserialize)]
struct Properties {
    #[serde(default)]
    properties: Vec<Value>,
}

impl CatalogOffers<'_> {
    /// Reads a catalog as catalogd serves it: a blob on each line.
    async fn read(&mut self, mut content: impl AsyncBufRead + Unpin) -> Result<(), String> {
        let (mut line, mut left) = (Vec::new(), CATALOG_BYTES.get());
        loop {
            let piece = content
                .fill_buf()
                .await
                .map_err(|error| format!("reading it failed: {error}"))?;
            if piece.is_empty() {
                return self.blob(&line);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len(), |end| end + 1);
            line.extend_from_slice(piece.get(..end.unwrap_or(taken)).unwrap_or_default());
            content.consume_unpin(taken);
            left = left
                .checked_sub(taken as u64)
                .ok_or_else(|| CATALOG_BYTES.exceeded().to_string())?;
            if line.len() as u64 > CATALOG_FILE.get() {
                return Err(CATALOG_FILE.exceeded().to_string());
            }
            if end.is_some() {
                self.blob(&line)?;
                line.clear();
            }
        }
    }

    fn blob(&mut self, line: &[u8]) -> Result<(), String> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let unreadable = |error: serde_json::Error| format!("its content is not a catalog: {error}");
        let head: Head = serde_json::from_slice(line).map_err(unreadable)?;
        let package = if head.schema == "olm.package" {
            &head.name
        } else {
            &head.package
        };
        if !self.packages.contains_key(package) {
            return Ok(());
        }
        let offer = || Offer::new(self.catalog);
        match head.schema.as_str() {
            "olm.package" => {
                self.offers.entry(head.name).or_insert_with(offer);
            }
            "olm.channel" => {
                self.offers
                    .entry(head.package)
                    .or_insert_with(offer)
                    .channels
                    .insert(head.name);
            }
            "olm.bundle" => {
                let bundle: Properties = serde_json::from_slice(line).map_err(unreadable)?;
                let is_version = |property: &&Value| text(property, "/type") == "olm.package";
                let versions = bundle.properties.iter().filter(is_version);
                let versions = versions.map(|property| text(property, "/value/version").to_owned());
                self.offers
                    .entry(head.package)
                    .or_insert_with(offer)
                    .versions
                    .extend(versions);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_services_are_asked() {
        let path = |base| path_of(base);
        assert_eq!(
            path("https://catalogd-service.olmv1-system.svc/catalogs/ours").unwrap(),
            "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/ours/api/v1/all"
        );
        assert_eq!(
            path("http://a.b.svc.cluster.local:8080/catalogs/ours.v1/").unwrap(),
            "/api/v1/namespaces/b/services/http:a:8080/proxy/catalogs/ours.v1/api/v1/all"
        );
        for base in [
            "",
            "https://localhost:8443/catalogs/ours",
            "https://catalogd.example.com/catalogs/ours",
            "ftp://a.b.svc/catalogs/ours",
            "https://a.b.svc/catalogs/../../secrets",
            "https://a.b.svc/catalogs/ours?x=y",
            "https://a.b.svc:x/catalogs/ours",
            "https://a%2f.b.svc/catalogs/ours",
            "https://a.b.svc",
        ] {
            assert_eq!(path(base), None, "{base}");
        }
    }

    #[tokio::test]
    async fn packages_channels_and_versions_are_read() {
        let packages: Offers = [("first".to_owned(), Offered::default())].into();
        let mut found = CatalogOffers {
            catalog: "ours",
            packages: &packages,
            offers: BTreeMap::new(),
        };
        let content = concat!(
            "{\"schema\":\"olm.package\",\"name\":\"first\"}\n",
            "{\"schema\":\"olm.package\",\"name\":\"second\"}\n\n",
            "{\"schema\":\"olm.channel\",\"package\":\"first\",\"name\":\"stable\",\"entries\":[]}\n",
            "{\"schema\":\"olm.channel\",\"package\":\"second\",\"name\":\"alpha\"}\n",
            "{\"schema\":\"olm.bundle\",\"package\":\"first\",\"name\":\"first.v1\",\"properties\":[{\"type\":\"olm.gvk\",\"value\":{}},",
            "{\"type\":\"olm.package\",\"value\":{\"packageName\":\"first\",\"version\":\"1.0.0\"}}]}",
        );
        // In pieces, as over a network.
        let pieces = futures::io::BufReader::with_capacity(7, content.as_bytes());
        found.read(pieces).await.unwrap();
        let mut offer = Offer::new("ours");
        offer.versions.insert("1.0.0".to_owned());
        offer.channels.insert("stable".to_owned());
        assert_eq!(found.offers, [("first".to_owned(), offer)].into());

        let problem = found.read("<html>".as_bytes()).await.unwrap_err();
        assert!(problem.starts_with("its content is not a catalog"), "{problem}");
    }
}
