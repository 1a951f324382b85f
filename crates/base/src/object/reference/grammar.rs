//! The rules of the grammar one by one, so that an error can name the broken one.

/// The longest repository name the grammar allows, registry included.
const NAME_LIMIT: usize = 255;
/// The longest tag the grammar allows.
const TAG_LIMIT: usize = 128;

/// The first component is a registry if it could not be a path component: it contains a dot, a colon or an uppercase
/// letter, or is `localhost`.
pub(super) fn split_registry(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((first, rest)) if first == "localhost" || first.contains(['.', ':']) || first.to_lowercase() != first => {
            (Some(first), rest)
        }
        _ => (None, name),
    }
}

pub(super) fn check_name(name: &str, registry: Option<&str>, repository: &str) -> Result<(), String> {
    if name.len() > NAME_LIMIT {
        return Err(format!(
            "its name has {} characters, at most {NAME_LIMIT} are allowed",
            name.len()
        ));
    }
    if let Some(registry) = registry
        && !is_registry(registry)
    {
        return Err(format!("{registry:?} is not a host name with an optional port"));
    }
    if repository.is_empty() {
        return Err("the repository is missing".to_owned());
    }
    match repository.split('/').find(|component| !is_component(component)) {
        None => Ok(()),
        Some("") => Err("it contains an empty path component".to_owned()),
        Some(component) if component.contains(|letter: char| letter.is_ascii_uppercase()) => {
            Err(format!("{component:?} must be lower case"))
        }
        Some(component) => Err(format!(
            "{component:?} must be lower-case letters and digits, separated by single '.', one or two '_', or '-'"
        )),
    }
}

pub(super) fn is_registry(registry: &str) -> bool {
    let (host, port) = match registry.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => return is_ipv6(address) && (port.is_empty() || is_port(port.strip_prefix(':'))),
            None => return false,
        },
        None => match registry.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (registry, None),
        },
    };
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(label) && (port.is_none() || is_port(port))
}

fn is_port(port: Option<&str>) -> bool {
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_ipv6(address: &str) -> bool {
    !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
}

pub(super) fn is_component(component: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    if !bytes.first().copied().is_some_and(alphanumeric) || !bytes.last().copied().is_some_and(alphanumeric) {
        return false;
    }
    // Between two alphanumeric runs there must be one separator: ".", "_", "__" or dashes.
    component
        .split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit())
        .all(|separator| matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-'))
}

pub(super) fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_LIMIT
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}
