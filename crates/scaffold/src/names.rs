//! Names that the API server, Cargo and Rust accept.

use crate::Error;

/// Words that cannot name a module. `mod` and `self` would refer to other files.
const RESERVED: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "lib", "loop", "macro", "main",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
    "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Types that scaffolded files use by these names. A kind of that name would hide them.
const TAKEN_TYPES: &[&str] = &[
    "Api",
    "Condition",
    "ConfigMap",
    "Context",
    "Controller",
    "CustomResource",
    "Default",
    "Deployment",
    "Deserialize",
    "Err",
    "Error",
    "KubeSchema",
    "ListMerge",
    "None",
    "Ok",
    "Option",
    "Outcome",
    "Reconciler",
    "Resource",
    "ResourceExt",
    "Result",
    "Rule",
    "Self",
    "Serialize",
    "Severity",
    "Some",
    "String",
    "Vec",
];

/// Crate names that would hide what every crate uses, or that Cargo refuses.
const TAKEN_CRATES: &[&str] = &[
    "alloc",
    "anyhow",
    "clap",
    "core",
    "jiff",
    "k8s-openapi",
    "kube",
    "kube-manager",
    "manifests",
    "olmkit",
    "olmkit-project",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "tokio",
    "tracing",
    "tracing-subscriber",
    "build",
    "deps",
    "examples",
    "incremental",
];

fn error(what: &'static str, value: &str, reason: impl Into<String>) -> Error {
    Error::Name {
        what,
        value: value.to_owned(),
        reason: reason.into(),
    }
}

/// Returns true if a text is a DNS label: at most 63 small letters, digits and inner hyphens.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns true if a text is a DNS name of at most 253 characters.
fn is_domain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Checks the name of a project: of its crate, its package, and the prefix of its objects.
///
/// # Errors
/// When Kubernetes, Cargo or Rust would refuse it.
pub fn project(name: &str) -> Result<(), Error> {
    let what = "--project-name";
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        let reason = "a name has small letters, digits and inner hyphens, and begins with a letter";
        return Err(error(what, name, reason));
    }
    // `<name>-system` is a namespace.
    if name.len() > 56 {
        return Err(error(
            what,
            name,
            "at most 56 characters, since <name>-system is a namespace",
        ));
    }
    if TAKEN_CRATES.contains(&name) || RESERVED.contains(&name) {
        return Err(error(
            what,
            name,
            "Rust or a library that the operator uses has this name",
        ));
    }
    Ok(())
}

/// Checks a domain, the common end of the project's groups.
///
/// # Errors
/// When it is not a DNS name, or one that only Kubernetes may use.
pub fn domain(name: &str) -> Result<(), Error> {
    let what = "--domain";
    if !is_domain(name) {
        let reason = "a domain has small letters, digits, inner hyphens and dots, such as example.com";
        return Err(error(what, name, reason));
    }
    protected(what, name)
}

/// The API server asks for an annotation of Kubernetes' own reviewers on definitions of these groups.
fn protected(what: &'static str, name: &str) -> Result<(), Error> {
    let ours = |end: &str| name == end || name.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
    if ours("k8s.io") || ours("kubernetes.io") {
        let reason = "the API server rejects definitions in k8s.io and kubernetes.io that Kubernetes has not approved";
        return Err(error(what, name, reason));
    }
    Ok(())
}

/// Checks a group and joins it with the domain: `cache` and `example.com` are `cache.example.com`.
///
/// # Errors
/// When the whole is not a DNS name with a dot, or a protected one.
pub fn group(short: &str, domain: &str) -> Result<String, Error> {
    let what = "--group";
    let full = joined(short, domain);
    if !is_domain(&full) {
        let reason = "a group has small letters, digits, inner hyphens and dots, such as cache";
        return Err(error(what, short, reason));
    }
    if !full.contains('.') {
        return Err(error(
            what,
            &full,
            "the group of a definition has a dot; give a --domain",
        ));
    }
    protected(what, &full)?;
    Ok(full)
}

/// Checks the version of a kind.
///
/// # Errors
/// When it is not like v1, v1alpha1 or v2beta1.
pub fn version(name: &str) -> Result<(), Error> {
    let number =
        |text: &str| !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    let valid = name.strip_prefix('v').is_some_and(|rest| {
        let stage = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
        match stage {
            Some((major, minor)) => number(major) && number(minor),
            None => number(rest),
        }
    });
    if !valid || name.len() > 20 {
        return Err(error("--version", name, "a version is like v1, v1alpha1 or v2beta1"));
    }
    Ok(())
}

/// Checks a kind, which also names a Rust type.
///
/// # Errors
/// When it is not in CamelCase, too long, or hides a type of the scaffolded files.
pub fn kind(name: &str) -> Result<(), Error> {
    let what = "--kind";
    camel_case(name)?;
    if TAKEN_TYPES.contains(&name) {
        return Err(error(
            what,
            name,
            "Rust or the scaffolded code uses a type of this name; choose another",
        ));
    }
    Ok(())
}

/// Checks a kind that others define: of its names, fewer are taken.
///
/// # Errors
/// When it is not in CamelCase, too long, or hides a type of the reconciler.
pub fn kind_of_others(name: &str) -> Result<(), Error> {
    camel_case(name)?;
    const TAKEN: &[&str] = &[
        "Context",
        "Controller",
        "Err",
        "Error",
        "None",
        "Ok",
        "Option",
        "Outcome",
        "Reconciler",
        "ResourceExt",
        "Result",
        "Self",
        "Some",
        "Vec",
    ];
    match TAKEN.contains(&name) {
        true => Err(error("--kind", name, "the scaffolded code uses a type of this name")),
        false => Ok(()),
    }
}

fn camel_case(name: &str) -> Result<(), Error> {
    let what = "--kind";
    let camel = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !camel || name.len() > 63 {
        let reason =
            "a kind has letters and digits in CamelCase, at most 63, and begins with a capital, such as Memcached";
        return Err(error(what, name, reason));
    }
    Ok(())
}

/// The plural of a kind in small letters, as the derive of kube and the API machinery form it.
pub fn plural_of(kind: &str) -> String {
    let gvk = kube::core::GroupVersionKind::gvk("", "v1", kind);
    kube::core::ApiResource::from_gvk(&gvk).plural
}

/// Checks a plural.
///
/// # Errors
/// When it is not a DNS label.
pub fn plural(name: &str) -> Result<(), Error> {
    if is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(error(
        "--plural",
        name,
        "a plural has small letters, digits and inner hyphens, and begins with a letter",
    ))
}

/// The Rust module for a name: `FirstMate` is `first_mate`, `Type` is `type_`, `my-group.x` is `my_group_x`.
pub fn module(name: &str) -> String {
    let mut module = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (at, character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            module.push('_');
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(at + 1);
        // A word begins at a capital after a small letter or digit, or before a small letter: DNSRecord is dns_record.
        let begins = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins {
            module.push('_');
        }
        module.push(character.to_ascii_lowercase());
    }
    if module.starts_with(|first: char| first.is_ascii_digit()) {
        module.insert(0, '_');
    }
    if RESERVED.contains(&module.as_str()) {
        module.push('_');
    }
    module
}

/// The name of an object of a kind in its controller: that of the module, unless it is long or the controller uses it.
pub fn variable(kind: &str) -> String {
    const TAKEN: &[&str] = &[
        "config_map",
        "context",
        "controller",
        "deployment",
        "image",
        "labels",
        "name",
        "names",
        "note",
        "object",
    ];
    match module(kind) {
        name if name.len() > 24 || TAKEN.contains(&name.as_str()) => "owner".to_owned(),
        name => name,
    }
}

/// The environment variable with the image that objects of a kind run.
pub fn image_variable(kind: &str) -> String {
    format!(
        "RELATED_IMAGE_{}",
        module(kind).trim_end_matches('_').to_ascii_uppercase()
    )
}

/// A name for people: `memcached-operator` is `Memcached Operator`.
pub fn display(name: &str) -> String {
    let words = name.split('-').filter(|word| !word.is_empty()).map(|word| {
        let mut characters = word.chars();
        let first = characters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(characters).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

fn joined(short: &str, domain: &str) -> String {
    match (short, domain) {
        ("", domain) => domain.to_owned(),
        (short, "") => short.to_owned(),
        (short, domain) => format!("{short}.{domain}"),
    }
}

/// The whole group of a kind of another project.
pub(crate) fn external_group(short: &str, domain: Option<&str>) -> Result<String, Error> {
    let full = joined(short, domain.unwrap_or_default());
    match full.split('.').all(is_label) {
        true => Ok(full),
        false => Err(Error::Name {
            what: "--group",
            value: full,
            reason: "a group has small letters, digits, inner hyphens and dots, such as cert-manager.io".to_owned(),
        }),
    }
}

/// A path of modules, written into a source.
pub(crate) fn rust_path(path: &str) -> Result<String, Error> {
    match syn::parse_str::<syn::Path>(path) {
        Ok(parsed) if parsed.segments.iter().all(|segment| segment.arguments.is_none()) && !path.contains(' ') => {
            Ok(path.to_owned())
        }
        _ => Err(Error::Name {
            what: "--external-api-path",
            value: path.to_owned(),
            reason: "expected the Rust module of the type, such as crate::external::cert_manager".to_owned(),
        }),
    }
}

/// Name and version of a dependency. They go into Cargo.toml.
pub(crate) fn dependency(module: &str) -> Result<(&str, &str), Error> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_version = |version: &str| {
        !version.is_empty()
            && version
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+'))
    };
    match module.split_once('@') {
        Some((name, version)) if is_name(name) && is_version(version) => Ok((name, version)),
        _ => Err(Error::Name {
            what: "--external-api-module",
            value: module.to_owned(),
            reason: "expected NAME@VERSION of a crate".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects() {
        assert!(project("memcached-operator").is_ok());
        for wrong in [
            "",
            "Memcached",
            "a_b",
            "-a",
            "1a",
            "test",
            "kube",
            "fn",
            &"a".repeat(57),
        ] {
            assert!(project(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_are_joined_with_the_domain() {
        assert_eq!(group("cache", "example.com").unwrap(), "cache.example.com");
        assert_eq!(group("", "example.com").unwrap(), "example.com");
        for (short, domain) in [
            ("Cache", "example.com"),
            ("cache", ""),
            ("a_b", "c.d"),
            ("x", "k8s.io"),
            ("", ""),
        ] {
            assert!(group(short, domain).is_err(), "{short}.{domain}");
        }
        assert!(group("my", "notk8s.io").is_ok());
    }

    #[test]
    fn versions() {
        for right in ["v1", "v2beta1", "v10alpha12"] {
            assert!(version(right).is_ok(), "{right}");
        }
        for wrong in ["1", "v", "v0", "v1gamma1", "v1alpha", "v1alpha1beta1", "v1.1", "V1"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_are_also_rust_types() {
        assert!(kind("Memcached").is_ok() && kind("DNSRecord").is_ok() && kind("Type").is_ok());
        for wrong in ["memcached", "First-Mate", "Option", "Self", "", "Ünit", &"A".repeat(64)] {
            assert!(kind(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modules_are_words_with_underscores_and_no_keywords() {
        for (kind, expected) in [
            ("Memcached", "memcached"),
            ("FirstMate", "first_mate"),
            ("DNSRecord", "dns_record"),
            ("Http2Route", "http2_route"),
            ("Type", "type_"),
            ("Mod", "mod_"),
            ("sea-creatures.x", "sea_creatures_x"),
            ("3d", "_3d"),
        ] {
            assert_eq!(module(kind), expected);
        }
    }

    #[test]
    fn plurals_are_those_of_the_derive() {
        assert_eq!(plural_of("Memcached"), "memcacheds");
        assert_eq!(plural_of("Proxy"), "proxies");
        assert_eq!(plural_of("Mesh"), "meshes");
        assert!(plural("admirales").is_ok() && plural("Admirals").is_err());
    }
}
