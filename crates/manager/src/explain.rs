//! Errors on one line.

/// An error and its causes on one line, without repetitions.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The API server's message, or why there was no response: the client's own text for an error response prints all of it
/// as a Rust value.
pub fn request(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        kube::Error::SerdeError(error) => format!("the object does not fit its type: {}", mismatch(error)),
        error => chain(error),
    }
}

/// Why a text does not fit a type, without any of its content: serde's own message quotes it, and the object may be a Secret.
pub fn mismatch(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let (what, position) = text.split_at(without_position(&text).len());
    // These name fields of the type.
    if what.starts_with("missing field `") || what.starts_with("duplicate field `") {
        return text;
    }
    // `invalid type: string "content", expected a map`
    let kinds = [
        "invalid type: ",
        "invalid value: ",
        "unknown variant ",
        "invalid length ",
    ];
    let kind = kinds.into_iter().find(|kind| what.starts_with(kind));
    let (Some(kind), Some(expected)) = (kind, what.rfind(", expected ")) else {
        return format!("invalid content{position}");
    };
    let found = what.get(kind.len()..expected).unwrap_or_default();
    let found = found.split(['"', '`']).next().unwrap_or_default().trim_end();
    let found = match kind {
        "invalid type: " | "invalid value: " => found,
        _ => "",
    };
    let kind = kind.trim_end();
    let space = if found.is_empty() { "" } else { " " };
    let expected = what.get(expected..).unwrap_or_default();
    format!("{kind}{space}{found}{expected}{position}")
}

/// The message of an error without its position in the text.
pub(crate) fn without_position(error: &str) -> &str {
    // It is at the end, after anything that the message may have quoted.
    match error.rsplit_once(" at line ") {
        Some((what, position)) if is_position(position) => what,
        _ => error,
    }
}

/// `1 column 2`
fn is_position(text: &str) -> bool {
    let parts = text.split_once(" column ");
    parts.is_some_and(|(line, column)| line.parse::<u64>().is_ok() && column.parse::<u64>().is_ok())
}

/// Why a watch failed.
pub fn watch(error: &kube::runtime::watcher::Error) -> String {
    use kube::runtime::watcher::Error;
    match error {
        Error::InitialListFailed(source) => format!("cannot list: {}", request(source)),
        Error::WatchStartFailed(source) => format!("cannot watch: {}", request(source)),
        Error::WatchFailed(source) => format!("watch closed: {}", request(source)),
        Error::WatchError(status) => format!("the API server closed the watch: {}", status.message),
        error => chain(error),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use serde::Deserialize;

    use super::*;

    fn secret(text: &str) -> String {
        let error = serde_json::from_str::<Secret>(text).unwrap_err();
        request(&kube::Error::SerdeError(error))
    }

    #[test]
    fn a_mismatch_is_explained_without_the_content() {
        for hostile in [
            "hunter2",
            "a, expected b",
            "x at line 1 column 2",
            "missing field `a`",
            "\\\"`",
        ] {
            let text = format!(r#"{{"metadata": {{"labels": "{hostile}"}}}}"#);
            let explained = secret(&text);
            assert!(
                explained.starts_with("the object does not fit its type: invalid type: string, expected "),
                "{explained}"
            );
            assert!(explained.contains(" at line 1 column "), "{explained}");
            assert!(!explained.contains(hostile), "{explained}");
        }
        let number = secret(r#"{"data": {"key": 123456}}"#);
        assert!(!number.contains("123456") && number.contains("integer"), "{number}");
        // Whatever a type makes of its content by itself.
        let own = secret(r#"{"data": {"key": "not-base64-hunter2!"}}"#);
        assert!(!own.contains("hunter2"), "{own}");
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Mode {
        One,
    }

    #[test]
    fn the_names_of_the_type_stay() {
        let variant = serde_json::from_str::<Mode>(r#""hunter2""#).unwrap_err();
        assert_eq!(mismatch(&variant), "unknown variant, expected `one` at line 1 column 9");
        assert_eq!(mismatch(&"missing field `spec`"), "missing field `spec`");
        assert_eq!(mismatch(&"hunter2 is not a size"), "invalid content");
        assert!(matches!(serde_json::from_str(r#""one""#), Ok(Mode::One)));
    }
}
