//! A repository of a registry, to which requests go.

use super::Client;
use super::endpoint::Endpoint;
use super::error::Error;
use super::settings::Source;

/// A repository of a registry, and the access that the client needs there.
pub(super) struct Peer<'c> {
    pub client: &'c Client,
    pub endpoint: Endpoint,
    pub repository: String,
    /// True if the client also pushes.
    pub push: bool,
    /// Repositories of the same registry to mount blobs from.
    pub mount_from: Vec<String>,
}

impl Client {
    pub(super) async fn peer(&self, source: &Source, push: bool) -> Result<Peer<'_>, Error> {
        let endpoint = self.endpoint(&source.registry, source.insecure).await?;
        Ok(Peer {
            client: self,
            endpoint,
            repository: source.repository.clone(),
            push,
            mount_from: Vec::new(),
        })
    }
}

impl Peer<'_> {
    /// The address of a path below the repository.
    pub(super) fn url(&self, path: &str) -> String {
        self.endpoint.url(&format!("{}/{path}", self.repository))
    }

    /// Registry and repository, for messages.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.endpoint.host, self.repository)
    }

    /// The scopes a token must cover. A `lender` is a repository to mount a blob from.
    pub(super) fn scopes(&self, lender: Option<&str>) -> Vec<String> {
        let actions = if self.push { "pull,push" } else { "pull" };
        let own = format!("repository:{}:{actions}", self.repository);
        let lender = lender.map(|from| format!("repository:{from}:pull"));
        std::iter::once(own).chain(lender).collect()
    }

    pub(super) fn token_key(&self, lender: Option<&str>) -> String {
        format!("{} {}", self.endpoint.host, self.scopes(lender).join(" "))
    }
}
