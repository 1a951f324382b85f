//! When to try again, and after how long.

use std::time::{Duration, SystemTime};

use jiff::fmt::rfc2822;

use crate::limits::{LONGEST_ASKED_WAIT, LONGEST_WAIT};

const FIRST_WAIT: Duration = Duration::from_millis(300);

/// Returns true if an answer may be different the next time: time-outs, rate limits, and failures of the server itself.
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

/// How long to wait after the given number of failed attempts (1 after the first). `retry_after` is the header's value.
pub(super) fn wait(failed: u32, retry_after: Option<&str>, now: SystemTime) -> Duration {
    if let Some(asked) = retry_after.and_then(|value| parse_retry_after(value, now)) {
        return asked.min(LONGEST_ASKED_WAIT);
    }
    let doubled = FIRST_WAIT.saturating_mul(1 << failed.saturating_sub(1).min(16));
    // Half of the wait is random, so that many clients that failed together do not come back together.
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Seconds, or a date (RFC 9110, 10.2.3).
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::DateTimeParser::new()
        .parse_timestamp(value.replace("GMT", "+0000"))
        .ok()?;
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(date.as_second()).ok()?);
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded() {
        let now = SystemTime::now();
        for failed in 1..40 {
            let wait = wait(failed, None, now);
            assert!(wait >= FIRST_WAIT / 2 && wait <= LONGEST_WAIT, "{failed}: {wait:?}");
        }
        assert!(wait(1, None, now) < wait(4, None, now));
    }

    #[test]
    fn the_server_is_obeyed_within_reason() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        assert_eq!(wait(1, Some("7"), now), Duration::from_secs(7));
        assert_eq!(
            wait(1, Some("Sun, 06 Nov 1994 08:49:37 GMT"), now),
            Duration::from_secs(7)
        );
        assert_eq!(wait(1, Some("86400"), now), LONGEST_ASKED_WAIT);
        assert!(wait(1, Some("soon"), now) <= FIRST_WAIT);
    }
}
