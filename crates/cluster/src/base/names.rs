//! The names and labels of created objects. The names are those of operator-sdk, so that its users recognize the
//! objects and either tool can clean up after the other.

use std::collections::{BTreeMap, BTreeSet};

use olmkit::object::dns1123_subdomain_problems;
use serde_json::{Value, json};

/// The OperatorGroup that is created if a namespace has none.
pub const OPERATOR_GROUP: &str = "operator-sdk-og";

/// The channel of a catalog with only one local bundle.
pub const CHANNEL: &str = "operator-sdk-run-bundle";

/// Label on everything that this tool creates.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "olmkit");

/// Label with the package that an object was created for.
pub const PACKAGE_LABEL: &str = "olmkit.dev/package";

/// Annotation on the Subscription: digest of the bundle's content, by which a rerun detects a changed bundle.
pub const DIGEST_ANNOTATION: &str = "olmkit.dev/bundle-digest";

/// Label on a catalog pod of olmkit: the CatalogSource that it serves.
pub const CATALOG_LABEL: &str = "olmkit.dev/catalog-source";

/// Annotation on OLM's Operator object of a package: cluster-scoped objects that were created for the package, as a
/// JSON object of names and UIDs: CRDs by name, other objects as `ClusterRole/name`.
pub const CREATED_ANNOTATION: &str = "olmkit.dev/created";

/// Annotation on the same object: objects that plans which were deleted before they ended may have created, as a JSON
/// object of the same names and the plans' times.
pub const UNFINISHED_ANNOTATION: &str = "olmkit.dev/unfinished";

/// Label on a CSV whose Subscription and catalog were deleted when this host stopped serving them: the beginning of the
/// bundle's digest. A label, because OLM copies a CSV's annotations to its pods.
pub const RELEASED_LABEL: &str = "olmkit.dev/bundle-digest";

/// Annotation on the CatalogSource: `host` or `pod`, where the catalog is served.
pub const SERVED_FROM_ANNOTATION: &str = "olmkit.dev/served-from";

/// Annotation on a Subscription that an upgrade pointed to another catalog: the part of its spec that changed, as JSON, as it
/// was.
pub const FOLLOWED_BEFORE_ANNOTATION: &str = "olmkit.dev/followed-before";

/// Annotation on the same object: the CSVs that a cleanup has begun to remove, with spaces between.
pub const REMOVED_CSVS_ANNOTATION: &str = "olmkit.dev/removed-csvs";

/// OLM writes the namespaces that an operator serves into this annotation of its CSV, separated by commas.
pub const TARGETS_ANNOTATION: &str = "olm.targetNamespaces";

/// The namespaces that a CSV with these annotations serves. An empty name means all. `None` if OLM has not recorded them.
pub fn targets(annotations: Option<&BTreeMap<String, String>>) -> Option<BTreeSet<String>> {
    let list = annotations?.get(TARGETS_ANNOTATION)?;
    Some(list.split(',').map(str::to_owned).collect())
}

/// operator-sdk's annotation on a CatalogSource that it created for one bundle.
pub const INJECTED_BUNDLES_ANNOTATION: &str = "operators.operatorframework.io/injected-bundles";

/// The value of [`RELEASED_LABEL`] for a digest.
pub fn released_value(digest: &str) -> String {
    digest.chars().take(32).collect()
}

/// Returns true if objects can be named after a package or a CSV.
///
/// # Errors
/// The reason why the name cannot be part of an object's name.
pub fn check(what: &str, name: &str) -> Result<(), String> {
    match dns1123_subdomain_problems(name).first() {
        None => Ok(()),
        Some(problem) => Err(format!("{what} {name:?} cannot name objects of a cluster: {problem}")),
    }
}

pub use olmkit::object::shell_word as word;

/// The CatalogSource for a package.
pub fn catalog_source(package: &str) -> String {
    format!("{package}-catalog")
}

/// The Subscription for a CSV: runs of characters other than letters and digits become one dash, then `-sub`.
pub fn subscription(csv: &str) -> String {
    format!("{}-sub", dashed(csv))
}

/// Prefix of OLM's labels on the components of a package in a namespace.
pub const COMPONENT: &str = "operators.coreos.com/";

/// OLM's label on the components of a package in a namespace. Label names have at most 63 characters.
pub fn component_label(package: &str, namespace: &str) -> String {
    let name: String = format!("{package}.{namespace}").chars().take(63).collect();
    format!("{COMPONENT}{}", name.trim_end_matches(['.', '-', '_']))
}

/// The Operator object that OLM creates for components with that label.
pub fn operator(package: &str, namespace: &str) -> String {
    component_label(package, namespace)
        .trim_start_matches(COMPONENT)
        .to_owned()
}

fn dashed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            out.push(character.to_ascii_lowercase());
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_matches('-').to_owned()
}

/// The labels of objects that are created for a package.
pub fn labels(package: &str) -> Value {
    // Label values end at 63 characters. A package name may be longer.
    let value: String = package.chars().take(63).collect();
    json!({MANAGED_BY.0: MANAGED_BY.1, PACKAGE_LABEL: value.trim_end_matches(['-', '.', '_'])})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_operator_sdk() {
        assert_eq!(catalog_source("memcached-operator"), "memcached-operator-catalog");
        assert_eq!(
            subscription("memcached-operator.v0.0.1"),
            "memcached-operator-v0-0-1-sub"
        );
        assert_eq!(
            component_label("memcached-operator", "default"),
            "operators.coreos.com/memcached-operator.default"
        );
    }

    #[test]
    fn only_what_can_name_objects_is_a_package() {
        for name in ["memcached-operator", "a.b", "3scale"] {
            assert_eq!(check("package", name), Ok(()));
        }
        for name in ["", "../../", "a/b", "A", "a b", "a\u{1b}[0m", &"a".repeat(254)] {
            assert!(check("package", name).is_err(), "{name:?}");
        }
        let problem = check("package", "../\u{1b}").unwrap_err();
        assert!(
            problem.starts_with(r#"package "../\u{1b}" cannot name objects"#),
            "{problem}"
        );
    }

    #[test]
    fn a_long_component_label_is_cut_as_olm_cuts_it() {
        let label = component_label(&"p".repeat(62), "x");
        assert_eq!(label, format!("operators.coreos.com/{}", "p".repeat(62)));
        assert_eq!(operator(&"p".repeat(62), "x"), "p".repeat(62));
        assert_eq!(operator("cache", "shop"), "cache.shop");
    }
}
