//! Times and durations as Go's `time` reads them.

use std::fmt::Write as _;

/// The layout `time.RFC3339`.
pub const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970.
    pub unix: i64,
    /// Nanoseconds within the second.
    pub nanosecond: u32,
}

impl Time {
    /// `Format(time.RFC3339)` of the time in UTC, without fractions of a second.
    ///
    /// ```
    /// let time = olmkit_go::time::parse_rfc3339("2024-02-29T23:30:00.5-01:00")?;
    /// assert_eq!(time.to_rfc3339(), "2024-03-01T00:30:00Z");
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        let (days, second) = (self.unix.div_euclid(86_400), self.unix.rem_euclid(86_400));
        // Not after the year, and a few years before it at most.
        let mut year = 1970 + days.div_euclid(if days < 0 { 365 } else { 366 });
        while days_since_1970(year + 1, 1, 1) <= days {
            year += 1;
        }
        let (mut month, mut day) = (1, days - days_since_1970(year, 1, 1) + 1);
        while day > days_in(month, year) {
            day -= days_in(month, year);
            month += 1;
        }
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// `time.Parse(time.RFC3339, text)`. It accepts more than RFC 3339: hours of one digit, a comma before fractions,
/// offsets of 24 hours.
///
/// # Errors
/// Go's message, `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
pub fn parse_rfc3339(text: &str) -> Result<Time, String> {
    let mut parser = Parser {
        text,
        rest: text.as_bytes(),
    };
    let year = parser.year()?;
    parser.literal('-')?;
    let month = parser.number("01", true)?;
    parser.within(1..=12, month, "month")?;
    parser.literal('-')?;
    let day = parser.number("02", true)?;
    parser.literal('T')?;
    let hour = parser.number("15", false)?;
    parser.within(0..=23, hour, "hour")?;
    parser.literal(':')?;
    let minute = parser.number("04", true)?;
    parser.within(0..=59, minute, "minute")?;
    parser.literal(':')?;
    let second = parser.number("05", true)?;
    parser.within(0..=59, second, "second")?;
    let nanosecond = parser.fraction();
    let offset = parser.offset()?;
    if !parser.rest.is_empty() {
        return Err(parser.refused(&format!(": extra text: {}", quote(parser.rest))));
    }
    if !(1..=days_in(month, year)).contains(&day) {
        return Err(parser.refused(": day out of range"));
    }
    Ok(Time {
        unix: ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset,
        nanosecond,
    })
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t [u8],
}

impl Parser<'_> {
    fn refused(&self, message: &str) -> String {
        format!("parsing time {}{message}", quote(self.text.as_bytes()))
    }

    fn mismatch(&self, at: &[u8], element: &str) -> String {
        let (layout, at, element) = (quote(RFC3339.as_bytes()), quote(at), quote(element.as_bytes()));
        self.refused(&format!(" as {layout}: cannot parse {at} as {element}"))
    }

    fn within(&self, range: std::ops::RangeInclusive<i64>, value: i64, name: &str) -> Result<(), String> {
        if range.contains(&value) {
            Ok(())
        } else {
            Err(self.refused(&format!(": {name} out of range")))
        }
    }

    fn literal(&mut self, wanted: char) -> Result<(), String> {
        match self.rest.split_first() {
            Some((first, rest)) if char::from(*first) == wanted => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.mismatch(self.rest, wanted.encode_utf8(&mut [0; 4]))),
        }
    }

    fn year(&mut self) -> Result<i64, String> {
        let year = self.rest.get(..4).and_then(digits);
        let year = year.ok_or_else(|| self.mismatch(self.rest, "2006"))?;
        self.rest = self.rest.get(4..).unwrap_or_default();
        Ok(year)
    }

    /// Two digits, or one where the layout allows it.
    fn number(&mut self, element: &str, two: bool) -> Result<i64, String> {
        let found = self.rest.get(..2).and_then(digits).map(|number| (number, 2));
        let one = || self.rest.get(..1).and_then(digits).map(|number| (number, 1));
        let found = found.or_else(|| if two { None } else { one() });
        let (number, length) = found.ok_or_else(|| self.mismatch(self.rest, element))?;
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok(number)
    }

    /// Digits after a point or a comma. Those below nanoseconds are dropped.
    fn fraction(&mut self) -> u32 {
        let [b'.' | b',', behind @ ..] = self.rest else {
            return 0;
        };
        let length = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return 0;
        }
        self.rest = behind.get(length..).unwrap_or_default();
        let padded = behind.iter().take(length).copied().chain(std::iter::repeat(b'0'));
        padded
            .take(9)
            .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, String> {
        const ELEMENT: &str = "Z07:00";
        let start = self.rest;
        if let [b'Z', rest @ ..] = start {
            self.rest = rest;
            return Ok(0);
        }
        let [sign, h1, h2, b':', m1, m2, rest @ ..] = start else {
            return Err(self.mismatch(start, ELEMENT));
        };
        let hours = digits(&[*h1, *h2]);
        let minutes = hours.and_then(|_| digits(&[*m1, *m2]));
        self.within(0..=24, hours.unwrap_or(0), "time zone offset hour")?;
        self.within(0..=60, minutes.unwrap_or(0), "time zone offset minute")?;
        let (Some(hours), Some(minutes), b'+' | b'-') = (hours, minutes, sign) else {
            return Err(self.mismatch(start, ELEMENT));
        };
        self.rest = rest;
        let seconds = (hours * 60 + minutes) * 60;
        Ok(if *sign == b'-' { -seconds } else { seconds })
    }
}

/// The number, if all characters are digits.
fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(*byte - b'0'))
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Days before a year, counted from year 0, which is a leap year.
    let before = |year: i64| {
        let last = year - 1;
        year * 365 + last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400) + 1
    };
    let months: i64 = (1..month).map(|month| days_in(month, year)).sum();
    before(year) - before(1970) + months + day - 1
}

/// The quoting of the errors of `time`: everything beyond ASCII by bytes.
fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=0x7f => out.push(char::from(*byte)),
            // Writing to a String cannot fail.
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

/// `time.ParseDuration`: `300ms`, `-1.5h`, `2h45m`, in nanoseconds.
///
/// # Errors
/// Go's message, `time: invalid duration "x"`.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let fault = |problem: &str| format!("time: {problem} {}", quote(text.as_bytes()));
    let invalid = || fault("invalid duration");
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let (whole, behind) = split_digits(rest);
        let (fraction, behind) = match behind.strip_prefix('.') {
            Some(behind) => split_digits(behind),
            None => ("", behind),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
        let whole = whole.ok().filter(|whole| *whole <= LIMIT).ok_or_else(invalid)?;
        let end = behind
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        if name.is_empty() {
            return Err(fault("missing unit in duration"));
        }
        let unit = unit(name).ok_or_else(|| fault(&format!("unknown unit {} in duration", quote(name.as_bytes()))))?;
        total = whole
            .checked_mul(unit)
            .and_then(|value| value.checked_add(scaled(fraction, unit)))
            .filter(|value| *value <= LIMIT)
            .and_then(|value| total.checked_add(value))
            .filter(|total| *total <= LIMIT)
            .ok_or_else(invalid)?;
        rest = behind;
    }
    if negative {
        0i64.checked_sub_unsigned(total).ok_or_else(invalid)
    } else {
        i64::try_from(total).map_err(|_| invalid())
    }
}

const LIMIT: u64 = 1 << 63;

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The nanoseconds of the digits after the point. Digits that do not fit 63 bits are dropped.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go computes with floats here, and what is dropped must be the same"
)]
fn scaled(fraction: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0u64, 1f64);
    for digit in fraction.bytes() {
        if number > (LIMIT - 1) / 10 {
            break;
        }
        let next = number * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}
