//! The grammars of names, with the texts in which Kubernetes refuses one.

/// Longest DNS subdomain.
const LONGEST_SUBDOMAIN: usize = 253;
/// Longest label value and longest name part of a key.
const LONGEST_NAME: usize = 63;

/// What is wrong with a DNS-1123 subdomain; empty when nothing is.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut faults = too_long(text, LONGEST_SUBDOMAIN);
    let valid = text.split('.').all(|label| is_label(label, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
    if !valid {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with \
             an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_string(),
        );
    }
    faults
}

/// What is wrong with a label value; empty when nothing is.
pub fn label_value(text: &str) -> Vec<String> {
    let mut faults = too_long(text, LONGEST_NAME);
    if !text.is_empty() && !is_name(text) {
        faults.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_string(),
        );
    }
    faults
}

/// What is wrong with a key of labels, annotations or finalizers; empty when nothing is.
pub fn qualified_name(text: &str) -> Vec<String> {
    const FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                        character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let mut faults = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_string());
            } else {
                faults.extend(dns1123_subdomain(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            return vec![format!("a qualified name {FORM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_string());
    } else if name.len() > LONGEST_NAME {
        faults.push(format!("name part must be no more than {LONGEST_NAME} characters"));
    }
    if !is_name(name) {
        faults.push(format!("name part {FORM}"));
    }
    faults
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    if text.len() > most { vec![format!("must be no more than {most} characters")] } else { Vec::new() }
}

/// `[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?`
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| inner(*byte)) && edge(bytes.first()) && edge(bytes.last())
}

fn is_label(text: &str, letter: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| letter(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| letter(*byte))
        && bytes.last().is_some_and(|byte| letter(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars() {
        assert!(dns1123_subdomain("my-operator.v1.2.3").is_empty());
        assert_eq!(dns1123_subdomain(".demo").len(), 1);
        assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-x").len(), 1);
        assert!(qualified_name("example.com/My_name.1").is_empty());
        assert!(qualified_name("a/b/c")[0].starts_with("a qualified name must consist"));
        assert!(qualified_name("A.com/x")[0].starts_with("prefix part a lowercase RFC 1123"));
        assert_eq!(qualified_name("").len(), 2);
    }
}
