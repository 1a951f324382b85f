//! Manifests: resolving, fetching, putting.

use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};

use super::answer::{body_text, decoded, is_gzip_encoded, said};
use super::error::Error;
use super::peer::Peer;
use crate::digest::{Algorithm, Digest, Hasher};
use crate::limits::{DOCUMENT_BYTES, REFUSAL_BYTES};
use crate::spec::{Descriptor, check_unambiguous, media_type, media_type_of};

const ACCEPTED: [&str; 5] = [
    media_type::OCI_INDEX,
    media_type::OCI_MANIFEST,
    media_type::DOCKER_LIST,
    media_type::DOCKER_MANIFEST,
    // Listed so that old registries send what they have and the error can name it.
    media_type::DOCKER_SCHEMA_1,
];

impl Peer<'_> {
    /// Resolves a tag or digest, without fetching the content if the registry supports it.
    pub(super) async fn resolve_manifest(&self, version: &str) -> Result<Descriptor, Error> {
        let action = format!("resolve {}", self.image(version));
        let url = self.url(&format!("manifests/{version}"));
        let response = self
            .send(&action, |http| http.head(&url).header(ACCEPT, ACCEPTED.join(", ")))
            .await?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let digest = header("docker-content-digest").and_then(|text| text.parse::<Digest>().ok());
        // The length of a compressed answer is not the size of the manifest.
        let is_encoded = is_gzip_encoded(response.headers());
        let size = header(CONTENT_LENGTH.as_str()).filter(|_| !is_encoded);
        let size = size.and_then(|text| text.parse().ok());
        let kind = header(CONTENT_TYPE.as_str()).map(str::to_owned);
        // A pinned reference has one digest, whatever the server answers; GET checks the content against it.
        let digest = digest.filter(|digest| !version.contains(':') || *version == digest.to_string());
        match (response.status().as_u16(), digest, size, kind) {
            (200, Some(digest), Some(size), Some(kind)) => Ok(Descriptor::new(&kind, digest, size)),
            // Not every registry answers HEAD in full, and none gives a reason in it. GET does.
            _ => Ok(self.fetch_manifest(version).await?.0),
        }
    }

    /// Fetches a manifest or index and checks it against the digest asked for.
    pub(super) async fn fetch_manifest(&self, version: &str) -> Result<(Descriptor, Vec<u8>), Error> {
        let (digest, header, bytes) = self.fetch_document(version, &ACCEPTED.join(", ")).await?;
        let header = header.filter(|header| ACCEPTED.contains(&header.as_str()));
        let action = format!("pull {}", self.image(version));
        let kind = media_type_of(&bytes, header.as_deref())
            .ok_or_else(|| self.protocol(&action, "the manifest has no media type".to_owned()))?;
        for kind in std::iter::once(&kind).chain(&header) {
            check_unambiguous(&bytes, kind).map_err(|reason| {
                Error::from(crate::Error::Refused {
                    what: format!("manifest {digest} of {}", self.name()),
                    reason,
                })
            })?;
        }
        Ok((Descriptor::new(&kind, digest, bytes.len() as u64), bytes))
    }

    /// Fetches a document of the media types in `accept`: its digest, its type in the answer's header, and its bytes.
    pub(super) async fn fetch_document(
        &self,
        version: &str,
        accept: &str,
    ) -> Result<(Digest, Option<String>, Vec<u8>), Error> {
        let action = format!("pull {}", self.image(version));
        let url = self.url(&format!("manifests/{version}"));
        let mut response = self.send(&action, |http| http.get(&url).header(ACCEPT, accept)).await?;
        if response.status().as_u16() != 200 {
            return Err(self
                .refused(&action, &format!("image {}", self.image(version)), response)
                .await);
        }
        let header = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        // Media types are compared without case.
        let header = header.map(|header| header.split(';').next().unwrap_or(header).trim().to_ascii_lowercase());
        let is_encoded = is_gzip_encoded(response.headers());
        let too_large = || self.protocol(&action, format!("the manifest has more than {DOCUMENT_BYTES} bytes"));
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&action, &error, 1))?
        {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > DOCUMENT_BYTES {
                return Err(too_large());
            }
        }
        if is_encoded {
            bytes = decoded(bytes, DOCUMENT_BYTES + 1);
            if bytes.len() as u64 > DOCUMENT_BYTES {
                return Err(too_large());
            }
        }
        let asked = version.parse::<Digest>().ok();
        let mut hasher = Hasher::new(asked.as_ref().map_or(Algorithm::Sha256, Digest::algorithm));
        hasher.update(&bytes);
        let actual = hasher.finish();
        if let Some(expected) = asked.filter(|expected| *expected != actual) {
            let (registry, what) = (
                self.endpoint.host.clone(),
                format!("manifest of {}", self.image(version)),
            );
            return Err(Error::Corrupt {
                registry,
                what,
                expected,
                actual,
            });
        }
        Ok((actual, header, bytes))
    }

    /// Stores a manifest or index under a tag or digest. Returns true if the registry has added it to the referrers of its
    /// subject.
    pub(super) async fn put_manifest(&self, version: &str, kind: &str, bytes: &[u8]) -> Result<bool, Error> {
        let action = format!("push {}", self.image(version));
        let url = self.url(&format!("manifests/{version}"));
        let response = self
            .send(&action, |http| {
                http.put(&url).header(CONTENT_TYPE, kind).body(bytes.to_vec())
            })
            .await?;
        match response.status().as_u16() {
            200..=204 => Ok(response.headers().contains_key("oci-subject")),
            415 if matches!(kind, media_type::DOCKER_MANIFEST | media_type::DOCKER_LIST) => {
                Err(Error::DockerMediaType {
                    registry: self.endpoint.host.clone(),
                    action,
                    said: said(&body_text(response, REFUSAL_BYTES).await),
                })
            }
            _ => Err(self
                .refused(&action, &format!("repository {}", self.repository), response)
                .await),
        }
    }

    /// The image's name with tag or digest, for messages.
    pub(super) fn image(&self, version: &str) -> String {
        let separator = if version.contains(':') { '@' } else { ':' };
        format!("{}{separator}{version}", self.name())
    }

    pub(super) fn protocol(&self, action: &str, problem: String) -> Error {
        Error::Protocol {
            registry: self.endpoint.host.clone(),
            action: action.to_owned(),
            problem,
        }
    }
}
