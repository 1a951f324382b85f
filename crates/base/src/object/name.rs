//! The grammars of names, labels and label values, with apimachinery's messages.

const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                          must start and end with an alphanumeric character";
const LABEL_1123_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                          alphabetic character, and end with an alphanumeric character";
const LABEL_1035_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";
const QUALIFIED_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                           '.', and must start and end with an alphanumeric character";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn pattern(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!(
        "{message} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

/// Reasons why a string is not a DNS-1123 label (`[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63 bytes).
pub fn dns1123_label_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(text, |first| first.is_ascii_lowercase() || first.is_ascii_digit()) {
        if is_subdomain(text) {
            // apimachinery has a separate message for the common case of a name that is a subdomain.
            problems.push("must not contain dots".to_owned());
        } else {
            problems.push(pattern(LABEL_1123, LABEL_1123_PATTERN, &["my-name", "123-abc"]));
        }
    }
    problems
}

/// Reasons why a string is not a DNS-1123 subdomain (labels with dots between, at most 253 bytes).
pub fn dns1123_subdomain_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push(too_long(253));
    }
    if !is_subdomain(text) {
        problems.push(pattern(SUBDOMAIN, SUBDOMAIN_PATTERN, &["example.com"]));
    }
    problems
}

/// Reasons why a string is not a DNS-1035 label (as a DNS-1123 label, but it starts with a letter).
pub fn dns1035_label_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(text, |first| first.is_ascii_lowercase()) {
        problems.push(pattern(LABEL_1035, LABEL_1035_PATTERN, &["my-name", "abc-123"]));
    }
    problems
}

/// Reasons why a string is not a qualified name, such as a label key: an optional DNS subdomain and a slash, then up to
/// 63 of `[-A-Za-z0-9_.]`.
pub fn qualified_name_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parts = text.split('/');
    let (name, prefix) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, None) => (name, None),
        (Some(prefix), Some(name), None) => (name, Some(prefix)),
        _ => {
            let wanted = pattern(QUALIFIED, QUALIFIED_PATTERN, &["MyName", "my.name", "123-abc"]);
            return vec![format!(
                "a qualified name {wanted} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    match prefix {
        None => {}
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(
                dns1123_subdomain_problems(prefix)
                    .into_iter()
                    .map(|text| format!("prefix part {text}")),
            );
        }
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified(name) {
        let wanted = pattern(QUALIFIED, QUALIFIED_PATTERN, &["MyName", "my.name", "123-abc"]);
        problems.push(format!("name part {wanted}"));
    }
    problems
}

/// Reasons why a string is not a label value (empty, or up to 63 of `[-A-Za-z0-9_.]`).
pub fn label_value_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(too_long(63));
    }
    if !text.is_empty() && !is_qualified(text) {
        let value_pattern = format!("({QUALIFIED_PATTERN})?");
        problems.push(pattern(LABEL_VALUE, &value_pattern, &["MyValue", "my_value", "12345"]));
    }
    problems
}

fn is_label(text: &str, first: fn(char) -> bool) -> bool {
    let inner = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    text.starts_with(first)
        && text.ends_with(inner)
        && text.chars().all(|character| inner(character) || character == '-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.')
        .all(|label| is_label(label, |first| first.is_ascii_lowercase() || first.is_ascii_digit()))
}

fn is_qualified(text: &str) -> bool {
    let edge = |character: char| character.is_ascii_alphanumeric();
    text.starts_with(edge)
        && text.ends_with(edge)
        && text
            .chars()
            .all(|character| edge(character) || matches!(character, '-' | '_' | '.'))
}
