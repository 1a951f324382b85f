//! String formats as the API server checks them. It ignores unknown ones.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use olmkit_go::{mail, time, url};
use regex::Regex;

/// Formats with a regular expression, from k8s.io/kube-openapi and govalidator.
const PATTERNS: [(&str, &str); 10] = [
    ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
    (
        "byte",
        r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
    ),
    ("hexcolor", r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "k8slongname",
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    ),
    ("k8sshortname", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ("ssn", r"^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$"),
    (
        "uuid",
        r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    ),
    (
        "uuid3",
        r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    ),
    (
        "uuid4",
        r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    ),
    (
        "uuid5",
        r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    ),
];

/// Returns true if a string matches a format. Unknown formats match any string, as does `password`.
pub(super) fn holds(format: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Vec<(&str, Option<Regex>)>> = LazyLock::new(|| {
        let compiled = PATTERNS.iter().map(|(name, pattern)| (*name, Regex::new(pattern).ok()));
        compiled.collect()
    });
    if format.is_empty() {
        return true;
    }
    let format = &*format.replace('-', "");
    match format {
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => time::parse_duration(text).is_ok() || is_named_duration(text),
        "email" => mail::parse_address(text).is_ok(),
        "ipv4" => is_ipv4(text) || (text.contains('.') && is_ipv6_with_zeros(text)),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "hostname" => is_hostname(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb_color(text),
        "uri" => url::parse_request_uri(text).is_ok(),
        "k8slongname" if text.len() > 253 => false,
        "k8sshortname" if text.len() > 63 => false,
        _ => {
            let pattern = COMPILED.iter().find(|(name, _)| *name == format);
            pattern
                .and_then(|(_, pattern)| pattern.as_ref())
                .is_none_or(|pattern| pattern.is_match(text))
        }
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// As strfmt's `IsDateTime`: the time zone is required.
fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$").ok()
    });
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && TIME.as_ref().is_none_or(|pattern| pattern.is_match(time))
}

/// As Go 1.26's `net.ParseMAC`, which Kubernetes 1.36 uses. Earlier versions require separators.
fn is_mac(text: &str) -> bool {
    if matches!(text.len(), 12 | 16 | 40) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return true;
    }
    let forms: [(char, usize, [usize; 3]); 3] = [(':', 2, [6, 8, 20]), ('-', 2, [6, 8, 20]), ('.', 4, [3, 4, 10])];
    forms.iter().any(|(separator, digits, counts)| {
        let parts: Vec<&str> = text.split(*separator).collect();
        let is_hex = |part: &&str| part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(is_hex)
    })
}

/// The characters that `\s` matches in Go.
const SPACE: [char; 5] = ['\t', '\n', '\u{c}', '\r', ' '];

/// As strfmt's `IsHostname`: one label, or several and a top-level domain. One label may have a hyphen only after its first
/// character. The pattern's limits of 62 and 63 characters are left out here, because the limit of 63 bytes is never wider.
/// Counted repetitions of large character classes would need megabytes.
fn is_hostname(text: &str) -> bool {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let part = r"[a-zA-Z0-9\p{S}\p{L}]";
        let (label, top) = (format!("{part}(?:(?:{part}|-)*{part})?"), r"[a-zA-Z\p{L}]");
        Regex::new(&format!(r"^(?:{part}-?{part}*|(?:{label}\.)+{top}{top}+)$")).ok()
    });
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && NAME.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// As govalidator's `IsCreditCard`: all other characters are ignored. The last digit is a checksum.
fn is_credit_card(text: &str) -> bool {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new("^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$")
        .ok()
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |(at, digit): (usize, u8)| {
        let number = u32::from(digit - b'0') << (at % 2);
        number / 10 + number % 10
    };
    NUMBER.as_ref().is_none_or(|pattern| pattern.is_match(&digits))
        && digits.bytes().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

/// The digits of an ISBN. White space and hyphens are ignored.
fn isbn_digits(text: &str) -> Vec<u32> {
    let digits = text.chars().filter(|c| *c != '-' && !SPACE.contains(c));
    // 99 is no digit.
    digits
        .map(|digit| digit.to_digit(10).unwrap_or(if digit == 'X' { 10 } else { 99 }))
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let [first @ .., last] = digits.as_slice() else {
        return false;
    };
    let weighted = digits.iter().zip(1..).map(|(digit, factor)| digit * factor);
    first.len() == 9 && first.iter().all(|digit| *digit < 10) && *last <= 10 && weighted.sum::<u32>() % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let sum = |digits: &[u32]| {
        digits
            .iter()
            .zip([1, 3].into_iter().cycle())
            .map(|(digit, factor)| digit * factor)
            .sum::<u32>()
    };
    digits.len() == 13 && digits.iter().all(|digit| *digit < 10) && sum(&digits) % 10 == 0
}

fn is_rgb_color(text: &str) -> bool {
    let is_level = |part: &str| {
        let part = part.trim_matches(SPACE);
        part.parse::<u8>().is_ok_and(|level| level.to_string() == part)
    };
    let levels = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    levels.is_some_and(|levels| levels.split(',').count() == 3 && levels.split(',').all(is_level))
}

/// Returns true if a string contains a number with a unit, as in Scala: `10 days`.
fn is_named_duration(text: &str) -> bool {
    static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)").ok());
    /// Short names, and the start of long names.
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    let Some(pattern) = NUMBER.as_ref() else { return true };
    let mut found = false;
    for (_, [number, unit]) in pattern.captures_iter(text).map(|captures| captures.extract()) {
        if number.parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.to_lowercase();
        found |= UNITS
            .iter()
            .any(|(names, start)| names.contains(&&*unit) || unit.starts_with(start));
    }
    found
}

/// As Kubernetes reads addresses: leading zeros are allowed.
fn is_ipv4(text: &str) -> bool {
    without_zeros(text).parse::<Ipv4Addr>().is_ok()
}

/// As [`is_ipv4`]. The last part may be an IPv4 address.
fn is_ipv6_with_zeros(text: &str) -> bool {
    let parts: Vec<String> = text.split(':').map(without_zeros).collect();
    parts.join(":").parse::<Ipv6Addr>().is_ok()
}

fn without_zeros(text: &str) -> String {
    let parts = text.split('.').map(|part| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        rest => rest,
    });
    parts.collect::<Vec<_>>().join(".")
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let Some(length) = length.parse::<u8>().ok().filter(|_| is_number) else {
        return false;
    };
    (is_ipv4(address) && length <= 32) || (is_ipv6_with_zeros(address) && length <= 128)
}

#[cfg(test)]
mod tests {
    use crate::object::{STRING_FORMATS, is_string_format};

    use super::*;

    /// As k8s.io/kube-openapi judges them.
    #[test]
    fn formats_are_checked_as_by_the_server() {
        for (format, right, wrong) in [
            ("date-time", "2020-01-01t10:00:00.5+01:00", "2020-01-01"),
            ("datetime", "2020-01-01T10:00:00Z", "2020-01-01T10:00:00"),
            ("date", "2020-02-29", "2020-02-30"),
            ("duration", "10 days", "10%"),
            ("duration", "-1.5h", ""),
            ("duration", "0", "80"),
            ("byte", "YR==", ""),
            ("byte", "YQ==", "YQ==\n"),
            (
                "uuid",
                "123e4567e89b12d3a456426614174000",
                "123e4567-e89b-12d3-a456-42661417400",
            ),
            (
                "uuid4",
                "123e4567-e89b-42d3-a456-426614174000",
                "123e4567-e89b-12d3-a456-426614174000",
            ),
            ("mac", "01:23:45:67:89:ab", "01:23:45:67:89"),
            ("mac", "0123.4567.89ab", "0123-4567-89ab"),
            ("hexcolor", "#fff", "#ffff"),
            ("rgbcolor", "rgb(1, 2, 255)", "rgb(1, 2, 256)"),
            ("ssn", "111-22-3333", "111223333"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("creditcard", "x3782-822463-10005", ""),
            ("isbn", "0-321-75104-3", "0-321-75104-4"),
            ("isbn", "978 0321751041", "978 0321751042"),
            ("isbn10", "080442957X", "X80442957X"),
            ("isbn10", "0321751043", "978-0321751041"),
            ("isbn13", "978-0321751041", "978032175104x"),
            ("hostname", "example.com", "example.c"),
            ("hostname", "8a-☃-b.дом", "-a.com"),
            ("hostname", "a-com", "com."),
            ("hostname", "a-", "ab-cd"),
            ("ipv4", "::ffff:01.2.3.4", "::ffff:1.2.3"),
            ("cidr", "::ffff:01.2.3.4/96", "1::2::3/8"),
            ("mac", "0123456789AB", "0123456789A"),
            ("ipv4", "010.0.0.1", "1.2.3"),
            ("ipv6", "::1", "1.2.3.4"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("email", "a@b", "a"),
            ("uri", "/a", "a"),
            ("k8s-short-name", "a-b", "a.b"),
            ("k8s-long-name", "a.b", "A.b"),
        ] {
            assert!(is_string_format(format), "{format}");
            assert!(holds(format, right), "{format} {right}");
            assert!(!holds(format, wrong), "{format} {wrong}");
        }
        for format in ["", "password", "int64", "unknown"] {
            assert!(holds(format, "any string"), "{format}");
        }
        assert!(!is_string_format("int64"));
    }

    #[test]
    fn each_format_of_the_server_is_checked() {
        for format in STRING_FORMATS {
            assert_eq!(holds(format, "any string\0"), format == "password", "{format}");
        }
        for (name, _) in PATTERNS {
            assert!(STRING_FORMATS.contains(&name), "{name}");
        }
    }
}
