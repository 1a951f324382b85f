//! Dates: those of PyYAML, and what `dateutil` accepts as ISO 8601.

use std::fmt;

/// A date, with a time of day or without.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DateTime {
    year: u32,
    month: u32,
    day: u32,
    time: Option<Time>,
}

#[derive(Debug, Clone, PartialEq)]
struct Time {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// Minutes east of Greenwich.
    zone: Option<i32>,
}

impl DateTime {
    /// Whether it has a time of day.
    pub(crate) fn has_time(&self) -> bool {
        self.time.is_some()
    }

    /// Python's `repr`.
    pub(super) fn repr(&self) -> String {
        let Self { year, month, day, time } = self;
        let Some(time) = time else {
            return format!("datetime.date({year}, {month}, {day})");
        };
        let mut text = format!(
            "datetime.datetime({year}, {month}, {day}, {}, {}",
            time.hour, time.minute
        );
        if time.second > 0 || time.micros > 0 {
            text.push_str(&format!(", {}", time.second));
        }
        if time.micros > 0 {
            text.push_str(&format!(", {}", time.micros));
        }
        match time.zone {
            None => {}
            Some(0) => text.push_str(", tzinfo=datetime.timezone.utc"),
            Some(minutes) => {
                let (days, seconds) = (minutes.div_euclid(1440), minutes.rem_euclid(1440) * 60);
                let delta = match days {
                    0 => format!("seconds={seconds}"),
                    _ => format!("days={days}, seconds={seconds}"),
                };
                text.push_str(&format!(", tzinfo=datetime.timezone(datetime.timedelta({delta}))"));
            }
        }
        text + ")"
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)?;
        let Some(time) = &self.time else { return Ok(()) };
        write!(f, " {:02}:{:02}:{:02}", time.hour, time.minute, time.second)?;
        if time.micros > 0 {
            write!(f, ".{:06}", time.micros)?;
        }
        if let Some(zone) = time.zone {
            let sign = if zone < 0 { '-' } else { '+' };
            write!(f, "{sign}{:02}:{:02}", zone.abs() / 60, zone.abs() % 60)?;
        }
        Ok(())
    }
}

/// What a plain scalar is as a YAML timestamp.
pub(super) enum Timestamp {
    No,
    /// It looks like one, but there is no such day or time.
    Invalid(String),
    Date(DateTime),
}

/// Reads a scalar as PyYAML reads timestamps.
pub(super) fn timestamp(text: &str) -> Timestamp {
    let Some(date) = shape(text) else {
        return Timestamp::No;
    };
    match check(&date) {
        Ok(()) => Timestamp::Date(date),
        Err(problem) => Timestamp::Invalid(problem),
    }
}

/// A cursor over ASCII text.
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl Cursor<'_> {
    /// Takes between `least` and `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self
            .bytes
            .iter()
            .take(most)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count < least {
            return None;
        }
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        std::str::from_utf8(taken).ok()?.parse().ok()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        let rest = self.bytes.strip_prefix(&[byte])?;
        self.bytes = rest;
        Some(())
    }

    fn blanks(&mut self) -> usize {
        let count = self
            .bytes
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        self.bytes = self.bytes.get(count..).unwrap_or_default();
        count
    }
}

fn shape(text: &str) -> Option<DateTime> {
    let mut cursor = Cursor { bytes: text.as_bytes() };
    let year = cursor.digits(4, 4)?;
    cursor.take(b'-')?;
    let before_month = cursor.bytes.len();
    let month = cursor.digits(1, 2)?;
    let two_month = before_month - cursor.bytes.len() == 2;
    cursor.take(b'-')?;
    let before_day = cursor.bytes.len();
    let day = cursor.digits(1, 2)?;
    let two_day = before_day - cursor.bytes.len() == 2;
    let date = DateTime {
        year,
        month,
        day,
        time: None,
    };
    if cursor.bytes.is_empty() {
        return (two_month && two_day).then_some(date);
    }
    if cursor.take(b'T').or_else(|| cursor.take(b't')).is_none() && cursor.blanks() == 0 {
        return None;
    }
    let hour = cursor.digits(1, 2)?;
    cursor.take(b':')?;
    let minute = cursor.digits(2, 2)?;
    cursor.take(b':')?;
    let second = cursor.digits(2, 2)?;
    let mut micros = 0;
    if cursor.take(b'.').is_some() {
        let count = cursor.bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let fraction: String = cursor
            .bytes
            .iter()
            .take(count.min(6))
            .map(|byte| char::from(*byte))
            .collect();
        cursor.bytes = cursor.bytes.get(count..).unwrap_or_default();
        micros = format!("{fraction:0<6}").parse().unwrap_or_default();
    }
    let zone = zone(&mut cursor)?;
    let time = Some(Time {
        hour,
        minute,
        second,
        micros,
        zone,
    });
    Some(DateTime { time, ..date })
}

/// `([ \t]*(Z|[-+][0-9][0-9]?(:[0-9][0-9])?))?` up to the end.
fn zone(cursor: &mut Cursor<'_>) -> Option<Option<i32>> {
    if cursor.bytes.is_empty() {
        return Some(None);
    }
    cursor.blanks();
    if cursor.take(b'Z').is_some() {
        return cursor.bytes.is_empty().then_some(Some(0));
    }
    let sign = match cursor.bytes.first() {
        Some(b'-') => -1,
        Some(b'+') => 1,
        _ => return None,
    };
    cursor.bytes = cursor.bytes.get(1..).unwrap_or_default();
    let hours = i32::try_from(cursor.digits(1, 2)?).ok()?;
    let minutes = match cursor.take(b':') {
        Some(()) => i32::try_from(cursor.digits(2, 2)?).ok()?,
        None => 0,
    };
    cursor.bytes.is_empty().then_some(Some(sign * (hours * 60 + minutes)))
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The words are those of Python's `datetime`, which a check may print.
fn check(date: &DateTime) -> Result<(), String> {
    if !(1..=9999).contains(&date.year) {
        return Err(format!("year {} is out of range", date.year));
    }
    if !(1..=12).contains(&date.month) {
        return Err("month must be in 1..12".to_owned());
    }
    if date.day < 1 || date.day > days_in(date.year, date.month) {
        return Err("day is out of range for month".to_owned());
    }
    let Some(time) = &date.time else { return Ok(()) };
    for (value, most, what) in [
        (time.hour, 23, "hour must be in 0..23"),
        (time.minute, 59, "minute must be in 0..59"),
        (time.second, 59, "second must be in 0..59"),
    ] {
        if value > most {
            return Err(what.to_owned());
        }
    }
    match time.zone {
        Some(minutes) if minutes.abs() >= 1440 => {
            Err("offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24)".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether `dateutil.parser.isoparse` accepts a text.
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

/// Python's `int` of a few bytes: blanks around, a sign and single underscores are fine.
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

/// Bytes from `start`, fewer at the end of the text, as a slice of Python is.
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

    #[test]
    fn timestamps_print_as_python_prints_them() {
        let read = |text: &str| match timestamp(text) {
            Timestamp::Date(date) => (date.to_string(), date.repr()),
            _ => panic!("{text} is a timestamp"),
        };
        assert_eq!(read("2024-02-29").0, "2024-02-29");
        let (text, repr) = read("2024-02-29T10:11:12.5Z");
        assert_eq!(text, "2024-02-29 10:11:12.500000+00:00");
        assert_eq!(
            repr,
            "datetime.datetime(2024, 2, 29, 10, 11, 12, 500000, tzinfo=datetime.timezone.utc)"
        );
        assert!(read("2024-02-29 10:11:12 -3:30").1.contains("days=-1, seconds=73800"));
    }
}
