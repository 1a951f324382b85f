//! Plain scalars that go-yaml reads as timestamps. They are read as strings, but the writer must quote them.

/// Returns true if `text` is a date, or a date and time, in one of the four forms of go-yaml v2: `2006-1-2`,
/// `2006-1-2 15:4:5.9`, `2006-1-2T15:4:5.9Z` (or `t`, or an offset such as `+01:00`).
pub(super) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let year_digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if year_digits != 4 || bytes.get(4) != Some(&b'-') {
        return false;
    }
    parse(text).is_some()
}

fn parse(text: &str) -> Option<()> {
    let (year, rest) = text.split_once('-')?;
    let (month, rest) = number(rest)?;
    let rest = rest.strip_prefix('-')?;
    let (day, rest) = number(rest)?;
    let year: u32 = year.parse().ok()?;
    if day == 0 || day > days_in(month, year)? {
        return None;
    }
    if rest.is_empty() {
        return Some(());
    }
    if let Some(rest) = rest.strip_prefix(' ') {
        return clock(rest)?.is_empty().then_some(());
    }
    zone(clock(rest.strip_prefix(['T', 't'])?)?)
}

/// Hours, minutes, seconds and an optional fraction. Returns the rest.
fn clock(text: &str) -> Option<&str> {
    let (hour, rest) = number(text)?;
    let (minute, rest) = number(rest.strip_prefix(':')?)?;
    let (second, rest) = number(rest.strip_prefix(':')?)?;
    if hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    match rest.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            Some(fraction.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => Some(rest),
    }
}

/// `Z`, or a sign, two digits, a colon, two digits, and nothing after.
fn zone(text: &str) -> Option<()> {
    if text == "Z" {
        return Some(());
    }
    let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
    let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = two_digits(hours) && two_digits(minutes) && hours <= "24" && minutes <= "60";
    fits.then_some(())
}

/// One or two digits.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (head, rest) = text.split_at_checked(digits)?;
    Some((head.parse().ok()?, rest))
}

fn days_in(month: u32, year: u32) -> Option<u32> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if leap { 29 } else { 28 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    #[test]
    fn knows_the_four_forms() {
        for text in [
            "2020-01-01",
            "2020-1-1",
            "2024-02-29",
            "2020-01-01 1:2:3",
            "2020-01-01 1:2:3.5",
            "2020-01-01T01:02:03Z",
            "2020-01-01t01:02:03.123456789123+01:00",
        ] {
            assert!(is_timestamp(text), "{text}");
        }
    }

    #[test]
    fn leaves_other_text_alone() {
        for text in [
            "2023-02-29",
            "2020-13-01",
            "2020-01",
            "20-01-01",
            "2020-01-01T01:02:03",
            "2020-01-01 25:00:00",
            "2020-01-01x",
        ] {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
