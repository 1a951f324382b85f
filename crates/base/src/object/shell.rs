//! Commands that users copy into a shell.

use std::borrow::Cow;

/// A word of a command that users copy into a shell. It is quoted if the shell would read more than a word. Names of packages, branches
/// and remotes can contain any text.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | ':' | '=' | '@' | ',');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''")).into()
}

#[cfg(test)]
mod tests {
    use super::shell_word as word;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        for text in ["cache", "a b", "a;b", "$(id)", "`id`", "it's", "", "x\ny", "*", "-n"] {
            let line = format!("printf %s {}", word(text));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{line}");
        }
        assert_eq!(word("memcached-operator.v0.0.1"), "memcached-operator.v0.0.1");
    }
}
