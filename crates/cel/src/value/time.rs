//! Timestamps and durations.

use std::cmp::Ordering;

use olmkit_go::time;

/// A moment between the years 1 and 9999.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// True if it was written with an offset from UTC, which its string form keeps.
    has_offset: bool,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.total_nanos() == other.total_nanos()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        self.total_nanos().cmp(&other.total_nanos())
    }
}

/// Parts of a moment, counted as CEL does: months and days of the year from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) day_of_year: i64,
    /// From Sunday.
    pub(crate) day_of_week: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

impl Timestamp {
    /// A timestamp, unless it is outside CEL's range.
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        (FIRST..=LAST).contains(&seconds).then_some(Self {
            seconds,
            nanos,
            has_offset: false,
        })
    }

    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        let found = time::parse_rfc3339(text).ok()?;
        let has_offset = !text.ends_with(['Z', 'z']) && !text.ends_with("+00:00");
        let moment = Self::new(found.unix, found.nanosecond)?;
        Some(Self { has_offset, ..moment })
    }

    /// Reads a date, `2006-01-02`.
    pub fn parse_date(text: &str) -> Option<Self> {
        // The rest of the layout is fixed, so that the length shows whether more follows the date.
        (text.len() == 10)
            .then(|| Self::parse(&format!("{text}T00:00:00Z")))
            .flatten()
    }

    /// The timestamp plus this number of nanoseconds.
    pub(crate) fn plus(self, nanos: i128) -> Option<Self> {
        let moment = Self::from_nanos(self.total_nanos() + nanos)?;
        Some(Self {
            has_offset: self.has_offset,
            ..moment
        })
    }

    pub(crate) fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
    }

    fn from_nanos(total: i128) -> Option<Self> {
        let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(1_000_000_000)).ok()?;
        Self::new(seconds, nanos)
    }

    /// The parts at an offset from UTC in seconds.
    pub(crate) fn parts(self, offset: i64) -> Parts {
        let local = self.seconds + offset;
        let (days, second_of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Parts {
            year,
            month: month - 1,
            day,
            day_of_year: days - days_from_civil(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
            hour: second_of_day / 3_600,
            minute: second_of_day / 60 % 60,
            second: second_of_day % 60,
        }
    }

    /// `time.RFC3339Nano` in UTC. `None` for a moment that Go writes at its own offset.
    pub(crate) fn text(self) -> Option<String> {
        if self.has_offset {
            return None;
        }
        let parts = self.parts(0);
        let date = format!("{:04}-{:02}-{:02}", parts.year, parts.month + 1, parts.day);
        let clock = format!("{:02}:{:02}:{:02}", parts.hour, parts.minute, parts.second);
        Some(format!("{date}T{clock}{}Z", fraction(self.nanos)))
    }
}

fn fraction(nanos: u32) -> String {
    if nanos == 0 {
        return String::new();
    }
    let digits = format!("{nanos:09}");
    format!(".{}", digits.trim_end_matches('0'))
}

/// Year, month and day of a number of days since 1970. (Counts in eras of 400 years that begin in March.)
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// Nanoseconds of a duration as Go writes it.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    time::parse_duration(text).ok()
}

/// Seconds with `s`, as CEL prints a duration.
pub(crate) fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    let fraction = u32::try_from(total % 1_000_000_000).map(fraction).unwrap_or_default();
    format!("{sign}{}{fraction}s", total / 1_000_000_000)
}

/// The offset from UTC in seconds of a string like `-08:00`. Names of zones are not supported.
pub(crate) fn zone_offset(text: &str) -> Option<i64> {
    if text == "UTC" || text.is_empty() {
        return Some(0);
    }
    let (hours, minutes) = text.split_once(':')?;
    let hour: i64 = hours.parse().ok()?;
    let minute: i64 = minutes.parse().ok().filter(|minute| (0..60).contains(minute))?;
    if !(-24..=24).contains(&hour) {
        return None;
    }
    let total = if hours.starts_with('-') {
        hour * 60 - minute
    } else {
        hour * 60 + minute
    };
    Some(total * 60)
}
