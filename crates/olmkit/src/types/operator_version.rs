//! The version of an operator as OLM reads it: semantic versioning, but with a leading `v`, leading zeros and missing numbers
//! allowed. Refusals are in the words of the Go library, because operator-sdk prints them.

use super::go_text::quote;

/// Brings a version into its full form.
///
/// # Errors
/// The library's text.
pub fn normalize(text: &str) -> Result<String, String> {
    let trimmed = text.trim();
    let trimmed = trimmed.strip_prefix('v').unwrap_or(trimmed);
    let mut parts: Vec<String> = trimmed.splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("Short version cannot contain PreRelease/Build meta data".to_string());
    }
    parts.resize(3, "0".to_string());
    check(&parts)?;
    Ok(parts.join("."))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_string();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest.to_string()
    } else {
        format!("0{rest}")
    }
}

fn check(parts: &[String]) -> Result<(), String> {
    let [major, minor, rest] = parts else {
        return Err("No Major.Minor.Patch elements found".to_string());
    };
    let (rest, build) = rest
        .split_once('+')
        .map_or((rest.as_str(), None), |(rest, build)| (rest, Some(build)));
    let (patch, prerelease) = rest
        .split_once('-')
        .map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
    number("major", "Major", major)?;
    number("minor", "Minor", minor)?;
    number("patch", "Patch", patch)?;
    for id in prerelease.into_iter().flat_map(|text| text.split('.')) {
        identifier(id, "Prerelease is empty", "prerelease")?;
        if id.bytes().all(|byte| byte.is_ascii_digit()) {
            if id.len() > 1 && id.starts_with('0') {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    quote(id)
                ));
            }
            unsigned(id)?;
        }
    }
    for id in build.into_iter().flat_map(|text| text.split('.')) {
        identifier(id, "Build meta data is empty", "build meta data")?;
    }
    Ok(())
}

fn number(word: &str, capital: &str, text: &str) -> Result<(), String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {word} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{capital} number must not contain leading zeroes {}",
            quote(text)
        ));
    }
    unsigned(text)
}

fn unsigned(text: &str) -> Result<(), String> {
    let reason = if text.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse::<u64>()
        .map(|_| ())
        .map_err(|_| format!("strconv.ParseUint: parsing {}: {reason}", quote(text)))
}

fn identifier(id: &str, when_empty: &str, word: &str) -> Result<(), String> {
    if id.is_empty() {
        return Err(when_empty.to_string());
    }
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(format!("Invalid character(s) found in {word} {}", quote(id)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_completed_or_refused_as_the_go_library_does() {
        for (text, full) in [
            ("v1.2", "1.2.0"),
            (" 01.002.3 ", "1.2.3"),
            ("1.2.3-rc.1+b", "1.2.3-rc.1+b"),
            ("0", "0.0.0"),
        ] {
            assert_eq!(normalize(text).as_deref(), Ok(full), "{text}");
        }
        let refused = [
            ("", "strconv.ParseUint: parsing \"\": invalid syntax"),
            ("0abc", "Invalid character(s) found in major number \"0abc\""),
            ("1.2-rc1", "Short version cannot contain PreRelease/Build meta data"),
            ("1.2.3-", "Prerelease is empty"),
            (
                "1.2.3-01",
                "Numeric PreRelease version must not contain leading zeroes \"01\"",
            ),
        ];
        for (text, reason) in refused {
            assert_eq!(normalize(text), Err(reason.to_string()), "{text}");
        }
    }
}
