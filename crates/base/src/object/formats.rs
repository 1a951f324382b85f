//! Formats in schemas of CustomResourceDefinitions.

/// The formats of strings that the API server checks (apiextensions, `supportedVersionedFormats`), without hyphens.
///
/// Kubernetes 1.34 added `k8slongname` and `k8sshortname`.
pub const STRING_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Returns true if the API server checks a format of strings. It ignores hyphens in the name, and unknown formats.
///
/// ```
/// use olmkit_base::object::is_string_format;
/// assert!(is_string_format("date-time") && is_string_format("datetime"));
/// assert!(!is_string_format("int64"));
/// ```
#[must_use]
pub fn is_string_format(name: &str) -> bool {
    STRING_FORMATS.contains(&&*name.replace('-', ""))
}
