//! Answers of registries and token servers, as strings.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::limits;

/// Returns true if a server's header reports that the answer is compressed for the transfer. The client never requests this, but some
/// servers and proxies always compress.
pub(super) fn is_gzip_encoded(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| matches!(value.trim().to_ascii_lowercase().as_str(), "gzip" | "x-gzip"))
}

/// The bytes of a document without the compression of the transfer, up to `limit` bytes. Bytes that are not gzip are not changed.
pub(super) fn decoded(bytes: Vec<u8>, limit: u64) -> Vec<u8> {
    let mut text = Vec::new();
    match MultiGzDecoder::new(bytes.as_slice()).take(limit).read_to_end(&mut text) {
        Ok(_) => text,
        Err(_) => bytes,
    }
}

/// The text of an answer, up to `limit` bytes. Unreadable parts are left out.
pub(super) async fn body_text(mut response: Response, limit: usize) -> String {
    let is_encoded = is_gzip_encoded(response.headers());
    let mut bytes = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() >= limit {
                bytes.truncate(limit);
                break;
            }
        }
    };
    // The part received by then is enough.
    let _ = tokio::time::timeout(limits::REFUSAL, read).await;
    if is_encoded {
        bytes = decoded(bytes, limit as u64);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A server's error in one line: the messages of the protocol's error document, else the start of the text.
pub(super) fn said(body: &str) -> String {
    let document: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let messages: Vec<String> = document
        .as_ref()
        .and_then(|document| document.get("errors"))
        .and_then(serde_json::Value::as_array)
        .map(|errors| errors.iter().map(one_error).collect())
        .unwrap_or_default();
    let text = if messages.is_empty() {
        let plain = if body.trim_start().starts_with('<') { "" } else { body };
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        messages.join("; ")
    };
    let text: String = text.chars().filter(|letter| !letter.is_control()).take(300).collect();
    if text.is_empty() { text } else { format!(": {text}") }
}

fn one_error(error: &serde_json::Value) -> String {
    let field = |name: &str| error.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    match (field("code"), field("message")) {
        ("", message) => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{message} [{code}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn answers_become_one_line() {
        assert_eq!(said(""), "");
        assert_eq!(said("<html><body>502</body></html>"), "");
        assert_eq!(said("slow\ndown"), ": slow down");
        let document = r#"{"errors":[{"code":"DENIED","message":"requested access is denied","detail":null}]}"#;
        assert_eq!(said(document), ": requested access is denied [DENIED]");
    }
}
