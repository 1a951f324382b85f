//! String formats whose check is certain. The API server supports more of them, and ignores unknown ones.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;

/// Returns true if a string matches a format. Unchecked formats match any string.
pub(super) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" => is_uuid(text),
        "byte" => base64::engine::general_purpose::STANDARD
            .decode(text.replace(['\r', '\n'], ""))
            .is_ok(),
        _ => true,
    }
}

fn is_date_time(text: &str) -> bool {
    let text = text.replacen(' ', "T", 1);
    text.parse::<jiff::Timestamp>().is_ok() || text.parse::<jiff::civil::DateTime>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Ok(length) = length.parse::<u8>() else { return false };
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => length <= 32,
        Ok(std::net::IpAddr::V6(_)) => length <= 128,
        Err(_) => false,
    }
}

fn is_uuid(text: &str) -> bool {
    let digits = text.chars().filter(|c| *c != '-').count();
    digits == 32 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
