//! ISO 8601 as the Python library `dateutil` accepts it.

use super::date::{DateTime, Time, check, is_leap};

/// Returns true if `dateutil.parser.isoparse` accepts a string.
pub(crate) fn is_iso_8601(text: &str) -> bool {
    text.is_ascii() && iso_8601(text.as_bytes()).is_some()
}

fn iso_8601(text: &[u8]) -> Option<()> {
    let (mut date, length) = common_date(text).or_else(|| uncommon_date(text))?;
    let mut next_day = false;
    if text.len() > length {
        let time = iso_time(text.get(length + 1..)?)?;
        next_day = time.hour == 24;
        date.time = Some(Time {
            hour: if next_day { 0 } else { time.hour },
            ..time
        });
    }
    check(&date).ok()?;
    let is_last_day = (date.year, date.month, date.day) == (9999, 12, 31);
    (!(next_day && is_last_day)).then_some(())
}

/// Python's `int` of a few bytes: surrounding whitespace, a sign and single underscores are allowed.
fn int(bytes: Option<&[u8]>) -> Option<i64> {
    let text = std::str::from_utf8(bytes?).ok()?.trim();
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sound = !bare.is_empty()
        && bare
            .split('_')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if !sound {
        return None;
    }
    let value: i64 = bare.replace('_', "").parse().ok()?;
    Some(if text.starts_with('-') { -value } else { value })
}

/// Bytes from `start`, fewer at the end of the string, as a Python slice.
fn slice(text: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    let start = start.min(text.len());
    text.get(start..(start + length).min(text.len()))
}

/// A date whose parts were read but not yet checked.
fn date(year: i64, month: i64, day: i64) -> Option<DateTime> {
    let part = |value: i64| u32::try_from(value).unwrap_or(0);
    Some(DateTime {
        year: part(year),
        month: part(month),
        day: part(day),
        time: None,
    })
}

fn common_date(text: &[u8]) -> Option<(DateTime, usize)> {
    if text.len() < 4 {
        return None;
    }
    let year = int(slice(text, 0, 4))?;
    if text.len() == 4 {
        return Some((date(year, 1, 1)?, 4));
    }
    let has_dash = text.get(4) == Some(&b'-');
    let mut at = 4 + usize::from(has_dash);
    if text.len() < at + 2 {
        return None;
    }
    let month = int(slice(text, at, 2))?;
    at += 2;
    if at >= text.len() {
        return if has_dash {
            Some((date(year, month, 1)?, at))
        } else {
            None
        };
    }
    if has_dash {
        if text.get(at) != Some(&b'-') {
            return None;
        }
        at += 1;
    }
    if text.len() < at + 2 {
        return None;
    }
    let day = int(slice(text, at, 2))?;
    Some((date(year, month, day)?, at + 2))
}

/// A week or an ordinal day.
fn uncommon_date(text: &[u8]) -> Option<(DateTime, usize)> {
    if text.len() < 4 {
        return None;
    }
    let year = int(slice(text, 0, 4))?;
    let has_dash = text.get(4) == Some(&b'-');
    let mut at = 4 + usize::from(has_dash);
    let in_range = u32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
    if text.get(at) == Some(&b'W') {
        let week = int(slice(text, at + 1, 2))?;
        at += 3;
        let mut day = 1;
        if text.len() > at {
            if (text.get(at) == Some(&b'-')) != has_dash {
                return None;
            }
            at += usize::from(has_dash);
            day = int(slice(text, at, 1))?;
            at += 1;
        }
        let sound = (1..54).contains(&week) && (1..8).contains(&day);
        return if sound { Some((date(year, 1, 1)?, at)) } else { None };
    }
    if text.len() < at + 3 {
        return None;
    }
    let ordinal = int(slice(text, at, 3))?;
    let most = if is_leap(in_range) { 366 } else { 365 };
    if (1..=most).contains(&ordinal) {
        return Some((date(year, 1, 1)?, at + 3));
    }
    None
}

fn iso_time(text: &[u8]) -> Option<Time> {
    if text.len() < 2 {
        return None;
    }
    let mut parts = [0_i64; 4];
    let mut zone = None;
    let (mut at, mut has_colon) = (0, false);
    for part in 0..=5_usize {
        if at >= text.len() {
            break;
        }
        if matches!(text.get(at), Some(b'-' | b'+' | b'Z' | b'z')) {
            zone = Some(iso_zone(text.get(at..)?)?);
            at = text.len();
            break;
        }
        if part == 1 && text.get(at) == Some(&b':') {
            has_colon = true;
            at += 1;
        } else if part == 2 && has_colon {
            if text.get(at) != Some(&b':') {
                return None;
            }
            at += 1;
        }
        if part < 3 {
            *parts.get_mut(part)? = int(slice(text, at, 2))?;
            at += 2;
        }
        if part == 3 && matches!(text.get(at), Some(b'.' | b',')) {
            let rest = text.get(at + 1..).unwrap_or_default();
            let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count > 0 {
                let is_zero = rest.iter().take(count.min(6)).all(|byte| *byte == b'0');
                parts[3] = i64::from(!is_zero);
                at += 1 + count;
            }
        }
    }
    if at < text.len() {
        return None;
    }
    if parts[0] == 24 && parts.iter().skip(1).any(|part| *part != 0) {
        return None;
    }
    let part = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    Some(Time {
        hour: part(parts[0]),
        minute: part(parts[1]),
        second: part(parts[2]),
        micros: part(parts[3]),
        zone,
    })
}

fn iso_zone(text: &[u8]) -> Option<i32> {
    if matches!(text, b"Z" | b"z") {
        return Some(0);
    }
    if ![3, 5, 6].contains(&text.len()) || !matches!(text.first(), Some(b'-' | b'+')) {
        return None;
    }
    let hours = int(slice(text, 1, 2))?;
    let minutes = match text.get(3) {
        None => 0,
        Some(b':') => int(text.get(4..))?,
        Some(_) => int(text.get(3..))?,
    };
    (minutes <= 59 && hours <= 23).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_8601_is_what_dateutil_accepts() {
        for text in [
            "2024",
            "2024-02",
            "2024-02-29",
            "20240229",
            "2024-W05",
            "2024W051",
            "2024-060",
            "2024-02-29T10:11",
            "2024-02-29 10:11:12.5+01:00",
            "2024-02-29T24:00",
            "2024-02-29T10Z",
            "2024-02-29T101112,25-0300",
            "2024-02-29x10",
        ] {
            assert!(is_iso_8601(text), "{text}");
        }
        for text in [
            "",
            "202",
            "202402",
            "2024/02/29",
            "2024-02-30",
            "2024-13-01",
            "2024-02-29T",
            "2024-02-29T1",
            "2024-02-29T24:01",
            "2024-02-29T10:11:12:13",
            "2024-02-29T10:11:12.5+1",
            "Feb 29",
            "2024-366x",
            "2023-366",
        ] {
            assert!(!is_iso_8601(text), "{text}");
        }
    }
}
