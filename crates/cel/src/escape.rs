//! Names of fields as expressions spell them.

use crate::lexer::RESERVED;

/// Words for values: as names of fields they are escaped like the reserved ones.
const VALUES: [&str; 3] = ["true", "false", "null"];

/// The name of a property in expressions: `a.b` is `a__dot__b`. `None` when expressions cannot name it.
pub fn escape(name: &str) -> Option<String> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.bytes().all(is_inner) {
        return None;
    }
    if VALUES.contains(&name) || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    // Most names need no change. The schema of a pod has a thousand.
    let is_changed = |pair: &[u8]| pair == b"__" || pair.iter().any(|byte| b".-/".contains(byte));
    if !name.as_bytes().windows(2).any(is_changed) && name.len() > 1 {
        return Some(name.to_owned());
    }
    let escaped = name
        .replace("__", "\u{0}")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(escaped.replace('\u{0}', "__underscores__"))
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_as_the_api_server_does() {
        for (name, escaped) in [
            ("plain_1", Some("plain_1")),
            ("a", Some("a")),
            ("a_", Some("a_")),
            ("-", Some("__dash__")),
            ("a.", Some("a__dot__")),
            ("/a", Some("__slash__a")),
            ("___", Some("__underscores___")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("$ref", None),
            ("1a", None),
            ("", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
