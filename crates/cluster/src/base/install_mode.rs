//! Install modes: the namespaces that an operator watches, the modes that its CSV supports, and the targets of an
//! OperatorGroup.

use std::collections::BTreeSet;
use std::fmt;

use olmkit::types::{InstallModeSupport, OperatorGroup};

/// Install mode of an operator. The namespaces are those that it watches, not the one that it runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallMode {
    /// It serves the namespace that it runs in.
    OwnNamespace,
    /// It serves one other namespace.
    SingleNamespace(String),
    /// It serves several namespaces.
    MultiNamespace(BTreeSet<String>),
    /// It serves the whole cluster.
    AllNamespaces,
}

impl InstallMode {
    /// Reads the value of `--install-mode`: `AllNamespaces`, `OwnNamespace`, `SingleNamespace=ns`, `MultiNamespace=ns1,ns2`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, list) = text.split_once('=').unwrap_or((text, ""));
        let names: BTreeSet<String> = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        match (kind.trim(), names.len()) {
            ("AllNamespaces", 0) => Ok(InstallMode::AllNamespaces),
            ("AllNamespaces", _) => Err("AllNamespaces takes no list of namespaces".into()),
            ("OwnNamespace", 0 | 1) => Ok(InstallMode::OwnNamespace),
            ("SingleNamespace", 1) => Ok(InstallMode::SingleNamespace(
                names.into_iter().next().unwrap_or_default(),
            )),
            ("SingleNamespace", _) => {
                Err("SingleNamespace takes exactly one namespace: SingleNamespace=NAMESPACE".into())
            }
            ("MultiNamespace", 0) => Err("MultiNamespace takes a list: MultiNamespace=NAMESPACE,NAMESPACE".into()),
            ("MultiNamespace", _) => Ok(InstallMode::MultiNamespace(names)),
            _ => Err(format!(
                "unknown install mode {text:?}; the modes are AllNamespaces, OwnNamespace, SingleNamespace=NAMESPACE and MultiNamespace=NAMESPACE,NAMESPACE"
            )),
        }
    }

    /// The name that CSVs use.
    pub fn name(&self) -> &'static str {
        match self {
            InstallMode::OwnNamespace => "OwnNamespace",
            InstallMode::SingleNamespace(_) => "SingleNamespace",
            InstallMode::MultiNamespace(_) => "MultiNamespace",
            InstallMode::AllNamespaces => "AllNamespaces",
        }
    }

    /// `spec.targetNamespaces` of an OperatorGroup for an operator that runs in `own`. Empty means all.
    pub fn targets(&self, own: &str) -> BTreeSet<String> {
        match self {
            InstallMode::OwnNamespace => BTreeSet::from([own.to_owned()]),
            InstallMode::SingleNamespace(name) => BTreeSet::from([name.clone()]),
            InstallMode::MultiNamespace(names) => names.clone(),
            InstallMode::AllNamespaces => BTreeSet::new(),
        }
    }
}

impl fmt::Display for InstallMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstallMode::SingleNamespace(name) => write!(f, "SingleNamespace={name}"),
            InstallMode::MultiNamespace(names) => {
                write!(
                    f,
                    "MultiNamespace={}",
                    names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
                )
            }
            other => f.write_str(other.name()),
        }
    }
}

/// The modes that a CSV must support for a set of targets, as olm-operator decides it: none is AllNamespaces, only the
/// operator's namespace is OwnNamespace, one other is SingleNamespace, several are MultiNamespace and, if they include
/// the operator's namespace, also OwnNamespace.
pub fn required_modes(targets: &BTreeSet<String>, own: &str) -> Vec<&'static str> {
    let all = targets.is_empty() || targets.contains("");
    match (all, targets.len(), targets.contains(own)) {
        (true, _, _) => vec!["AllNamespaces"],
        (false, 1, true) => vec!["OwnNamespace"],
        (false, 1, false) => vec!["SingleNamespace"],
        (false, _, true) => vec!["MultiNamespace", "OwnNamespace"],
        (false, _, false) => vec!["MultiNamespace"],
    }
}

/// Those of the modes needed for `targets` that the CSV does not support.
pub fn unsupported(modes: &[InstallModeSupport], targets: &BTreeSet<String>, own: &str) -> Vec<&'static str> {
    let supported = supported(modes);
    required_modes(targets, own)
        .into_iter()
        .filter(|mode| !supported.contains(mode))
        .collect()
}

/// The names of the supported modes, in order of preference.
pub fn supported(modes: &[InstallModeSupport]) -> Vec<&'static str> {
    ["AllNamespaces", "OwnNamespace", "SingleNamespace", "MultiNamespace"]
        .into_iter()
        .filter(|name| modes.iter().any(|mode| mode.kind == *name && mode.supported))
        .collect()
}

/// The targets of an OperatorGroup, `None` if it selects them by label (then only its status lists them).
pub fn group_targets(group: &OperatorGroup) -> Option<BTreeSet<String>> {
    if !group.spec.target_namespaces.is_empty() {
        return Some(group.spec.target_namespaces.iter().cloned().collect());
    }
    let selects = group.spec.selector.as_ref().is_some_and(|selector| {
        selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
            || selector
                .match_expressions
                .as_ref()
                .is_some_and(|expressions| !expressions.is_empty())
    });
    if !selects {
        return Some(BTreeSet::new());
    }
    let found: BTreeSet<String> = group.status.namespaces.iter().cloned().collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_flag_is_read_as_operator_sdk_reads_it() {
        assert_eq!(InstallMode::parse("AllNamespaces"), Ok(InstallMode::AllNamespaces));
        assert_eq!(
            InstallMode::parse("SingleNamespace=a"),
            Ok(InstallMode::SingleNamespace("a".into()))
        );
        assert_eq!(
            InstallMode::parse("MultiNamespace=b,a"),
            Ok(InstallMode::MultiNamespace(set(&["a", "b"])))
        );
        assert!(InstallMode::parse("SingleNamespace").is_err());
        assert!(InstallMode::parse("SingleNamespace=a,b").is_err());
        assert!(InstallMode::parse("Everywhere").is_err());
    }

    #[test]
    fn targets_decide_the_modes() {
        assert_eq!(required_modes(&set(&[]), "own"), ["AllNamespaces"]);
        assert_eq!(required_modes(&set(&[""]), "own"), ["AllNamespaces"]);
        assert_eq!(required_modes(&set(&["own"]), "own"), ["OwnNamespace"]);
        assert_eq!(required_modes(&set(&["a"]), "own"), ["SingleNamespace"]);
        assert_eq!(required_modes(&set(&["a", "b"]), "own"), ["MultiNamespace"]);
        assert_eq!(
            required_modes(&set(&["a", "own"]), "own"),
            ["MultiNamespace", "OwnNamespace"]
        );
    }
}
