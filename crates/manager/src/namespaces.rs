//! The namespaces that an operator watches.
use std::{collections::BTreeSet, fmt, str::FromStr};

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};

/// All namespaces, or some of them.
///
/// The text form is the one that OLM writes into the annotation `olm.targetNamespaces` and operators read from the
/// variable `WATCH_NAMESPACE`: names separated by commas, empty for all.
///
/// ```
/// use kube_manager::namespaces::Namespaces;
///
/// let some: Namespaces = "blue, green".parse()?;
/// assert!(some.contains("green") && !some.contains("red"));
/// assert!("".parse::<Namespaces>()?.contains("red"));
/// # Ok::<(), kube_manager::namespaces::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// All namespaces, including those created later: cluster-wide watches.
    #[default]
    All,
    /// These namespaces: one watch in each, so that permissions in these namespaces suffice.
    These(BTreeSet<String>),
}

/// An invalid list of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid namespace {name:?}: expected a comma-separated list of names of lower-case letters, digits and '-'")]
pub struct Error {
    /// The invalid name.
    pub name: String,
}

impl FromStr for Namespaces {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let names: BTreeSet<String> = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        if let Some(name) = names.iter().find(|name| !is_label(name)) {
            return Err(Error { name: name.clone() });
        }
        Ok(if names.is_empty() {
            Self::All
        } else {
            Self::These(names)
        })
    }
}

/// Returns true if `name` is a DNS label (RFC 1123), as names of namespaces are.
fn is_label(name: &str) -> bool {
    name.len() <= 63
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

impl Namespaces {
    /// Returns true if objects in `namespace` are watched.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(namespace),
        }
    }

    /// The namespaces to watch. `None` means a cluster-wide watch.
    pub fn scopes(&self) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::These(names) => names.iter().cloned().map(Some).collect(),
        }
    }

    /// The APIs of kind `K`: one for each of [`scopes`](Self::scopes).
    pub fn apis<K>(&self, client: &Client) -> Vec<(Option<String>, Api<K>)>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.scopes()
            .into_iter()
            .map(|scope| {
                let api = match &scope {
                    None => Api::all(client.clone()),
                    Some(namespace) => Api::namespaced(client.clone(), namespace),
                };
                (scope, api)
            })
            .collect()
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all namespaces"),
            Self::These(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_trimmed_and_empty_parts_ignored() {
        let parsed: Namespaces = " b ,a,, b".parse().unwrap();
        assert_eq!(parsed.scopes(), [Some("a".to_owned()), Some("b".to_owned())]);
        assert_eq!(" , ".parse(), Ok(Namespaces::All));
    }

    #[test]
    fn invalid_namespaces_are_rejected() {
        for text in ["Blue", "a b", "-a", "a_b", &"x".repeat(64)] {
            let error = text.parse::<Namespaces>().unwrap_err();
            assert_eq!(error.name, text);
        }
    }
}
