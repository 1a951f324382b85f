//! Dates as PyYAML reads them.

use std::fmt;

/// A date, with a time of day or without.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DateTime {
    pub(super) year: u32,
    pub(super) month: u32,
    pub(super) day: u32,
    pub(super) time: Option<Time>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Time {
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) micros: u32,
    /// Minutes east of Greenwich.
    pub(super) zone: Option<i32>,
}

impl DateTime {
    /// Returns true if it has a time of day.
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

/// A plain scalar as a YAML timestamp.
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

/// A cursor over an ASCII string.
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl Cursor<'_> {
    /// Reads between `least` and `most` digits.
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

pub(super) fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The messages are those of Python's `datetime`, which a check may print.
pub(super) fn check(date: &DateTime) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
