//! Timestamps as Go's `time.Parse` reads them with the layout of RFC 3339.

/// Checks a timestamp.
///
/// # Errors
/// The text says what is wrong; Go's own texts name the part of the layout that did not match, these do not.
pub fn check(text: &str) -> Result<(), String> {
    // RFC 3339 wants the `T` and, here, an offset with a colon or `Z`, both in upper case.
    let shape = text.as_bytes().get(10) == Some(&b'T') && !text.ends_with('z');
    match text.parse::<jiff::Timestamp>() {
        Ok(_) if shape => Ok(()),
        _ => Err(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": it is no RFC 3339 timestamp"
        )),
    }
}
