//! A client whose clock is wrong, as the API server and other clients see it.
//!
//! A client with a fast clock writes times in the future, and reads times that are behind its own. So the times in its
//! requests are moved forward and those in its answers back, and the real clock does not change.
use std::io;

use futures::{Stream, StreamExt, stream};
use hyper::body::Bytes;
use k8s_openapi::jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};

use super::parts::lines;

/// Length of a time up to the seconds, as Kubernetes writes it: `2026-11-22T10:00:00`.
const TIME: usize = 19;

/// `json` with all times moved by `seconds`. Its length does not change: years have four digits, and fractions of a
/// second are kept.
pub(crate) fn shift(json: &mut [u8], seconds: i64) {
    let mut at = 0;
    while let Some(quote) = json.iter().skip(at).position(|byte| *byte == b'"') {
        at += quote + 1;
        let Some(moved) = json.get(at..).and_then(|rest| moved(rest, seconds)) else {
            continue;
        };
        if let Some(place) = json.get_mut(at..at + TIME) {
            place.copy_from_slice(moved.as_bytes());
        }
    }
}

/// The shifted time at the start of a quoted string, if the string is exactly a time in UTC.
fn moved(text: &[u8], seconds: i64) -> Option<String> {
    let (time, rest) = text.split_at_checked(TIME)?;
    let fraction = rest.strip_prefix(b".").unwrap_or(rest);
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !fraction.get(digits..)?.starts_with(b"Z\"") || time.get(10) != Some(&b'T') {
        return None;
    }
    let time: DateTime = std::str::from_utf8(time).ok()?.parse().ok()?;
    let time: Timestamp = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let moved = time.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(moved.strftime("%Y-%m-%dT%H:%M:%S").to_string()).filter(|text| text.len() == TIME)
}

/// A body with all times moved: line by line if it is that of a watch, otherwise as a whole.
pub(crate) fn shifted(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    watch: bool,
    seconds: i64,
) -> stream::BoxStream<'static, io::Result<Bytes>> {
    let change = move |part: io::Result<Bytes>| {
        part.map(|part| {
            let mut part = part.to_vec();
            shift(&mut part, seconds);
            Bytes::from(part)
        })
    };
    if watch {
        return lines(parts).map(change).boxed();
    }
    let whole = async move {
        let mut whole = Vec::new();
        let mut parts = std::pin::pin!(parts);
        while let Some(part) = parts.next().await {
            whole.extend_from_slice(&part?);
        }
        Ok(Bytes::from(whole))
    };
    stream::once(whole).map(change).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift_text(json: &str, seconds: i64) -> String {
        let mut bytes = json.as_bytes().to_vec();
        shift(&mut bytes, seconds);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn times_are_moved_and_nothing_else() {
        let lease =
            r#"{"renewTime":"2026-12-31T23:59:58.000001Z","acquireTime":"2026-02-28T23:00:00Z","holderIdentity":"a"}"#;
        let ahead = shift_text(lease, 3600);
        assert!(ahead.contains(r#""2027-01-01T00:59:58.000001Z""#), "{ahead}");
        assert!(ahead.contains(r#""2026-03-01T00:00:00Z""#), "{ahead}");
        assert_eq!(shift_text(&ahead, -3600), lease);
        for other in [
            r#""2026-12-31""#,
            r#""2026-12-31T23:59:58""#,
            r#""2026-12-31T23:59:58+01:00""#,
            r#""at 2026-12-31T23:59:58Z""#,
            r#""2026-12-31T23:59:58Z or so""#,
            r#""2026-99-31T23:59:58Z""#,
            r#""9999-12-31T23:59:58Z""#,
            r#""2026-12-31T23:59"#,
        ] {
            assert_eq!(shift_text(other, 3600), other);
        }
    }
}
