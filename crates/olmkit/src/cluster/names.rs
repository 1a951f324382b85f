//! The names and labels of what the flows create. Names are those of operator-sdk, so that its users find their objects
//! again and either tool can clean up after the other.

/// The OperatorGroup that is made when a namespace has none.
pub const OPERATOR_GROUP: &str = "operator-sdk-og";

/// The channel of a catalog that holds nothing but the bundle at hand.
pub const CHANNEL: &str = "operator-sdk-run-bundle";

/// Label on everything that this tool creates.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "olmkit");

/// Label with the package that an object was created for.
pub const PACKAGE_LABEL: &str = "olmkit.dev/package";

/// Annotation on the Subscription: digest of the bundle's content, so that a rerun knows whether the bundle changed.
pub const DIGEST_ANNOTATION: &str = "olmkit.dev/bundle-digest";

/// Label on a catalog pod that this tool makes: the CatalogSource that it serves.
pub const CATALOG_LABEL: &str = "olmkit.dev/catalog-source";

/// Label on a CSV whose Subscription and catalog went when this host stopped serving them: the beginning of the bundle's
/// digest. A label, because OLM copies a CSV's annotations into its pods.
pub const RELEASED_LABEL: &str = "olmkit.dev/bundle-digest";

/// Annotation on the CatalogSource: `host` or `pod`, where the catalog is served.
pub const SERVED_FROM_ANNOTATION: &str = "olmkit.dev/served-from";

/// Annotation on a Subscription that an upgrade pointed to another catalog: the part of its spec that changed, as JSON, as it
/// was.
pub const FOLLOWED_BEFORE_ANNOTATION: &str = "olmkit.dev/followed-before";

/// The value of [`RELEASED_LABEL`] for a digest.
pub fn released_value(digest: &str) -> String {
    digest.chars().take(32).collect()
}

/// The CatalogSource for a package.
pub fn catalog_source(package: &str) -> String {
    format!("{package}-catalog")
}

/// The Subscription for a CSV: runs of characters other than letters and digits become one dash, then `-sub`.
pub fn subscription(csv: &str) -> String {
    format!("{}-sub", dashed(csv))
}

/// How the labels begin that OLM puts on what belongs to a package in a namespace.
pub const COMPONENT: &str = "operators.coreos.com/";

/// The label that OLM puts on what belongs to a package in a namespace. Label names end at 63 characters.
pub fn component_label(package: &str, namespace: &str) -> String {
    let name: String = format!("{package}.{namespace}").chars().take(63).collect();
    format!("{COMPONENT}{}", name.trim_end_matches(['.', '-', '_']))
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
    fn a_long_component_label_is_cut_as_olm_cuts_it() {
        let label = component_label(&"p".repeat(62), "x");
        assert_eq!(label, format!("operators.coreos.com/{}", "p".repeat(62)));
    }
}
