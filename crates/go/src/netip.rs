//! IP addresses as Go's `net/netip` reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::strconv::quote_bytes;

/// An address, and the zone of an IPv6 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addr {
    /// The address.
    pub ip: IpAddr,
    /// The part after `%`, or empty.
    pub zone: String,
}

/// `netip.ParseAddr`.
///
/// # Errors
/// Go's message, `ParseAddr("x"): …`.
pub fn parse_addr(text: &str) -> Result<Addr, String> {
    parse_addr_bytes(text.as_bytes())
}

/// `netip.ParseAddr` of a Go string that need not be UTF-8.
pub(crate) fn parse_addr_bytes(bytes: &[u8]) -> Result<Addr, String> {
    // One character for each byte, so that the string can be split anywhere.
    let text: String = bytes.iter().copied().map(char::from).collect();
    let to_bytes = |text: &str| -> Vec<u8> { text.chars().filter_map(|c| u8::try_from(c).ok()).collect() };
    let text = text.as_str();
    let parsed = match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => ipv4(text).map(|octets| Addr {
            ip: Ipv4Addr::from(octets).into(),
            zone: String::new(),
        }),
        Some(b':') => ipv6(text),
        Some(_) => Err(Fault::new("missing IPv6 address")),
        None => Err(Fault::new("unable to parse IP")),
    };
    let parsed = parsed.map(|addr| Addr {
        zone: String::from_utf8_lossy(&to_bytes(&addr.zone)).into_owned(),
        ..addr
    });
    parsed.map_err(|fault| {
        let place = if fault.at.is_empty() {
            String::new()
        } else {
            format!(" (at {})", quote_bytes(&to_bytes(fault.at)))
        };
        format!("ParseAddr({}): {}{place}", quote_bytes(bytes), fault.problem)
    })
}

/// The error, and the rest of the input if Go prints it.
struct Fault<'t> {
    problem: &'static str,
    at: &'t str,
}

impl<'t> Fault<'t> {
    fn new(problem: &'static str) -> Self {
        Self::at(problem, "")
    }

    fn at(problem: &'static str, at: &'t str) -> Self {
        Self { problem, at }
    }
}

fn ipv4(text: &str) -> Result<[u8; 4], Fault<'_>> {
    let mut octets = Vec::new();
    let mut octet = 0u16;
    let mut digits = 0;
    for (at, character) in text.char_indices() {
        match character {
            '0'..='9' => {
                if digits == 1 && octet == 0 {
                    return Err(Fault::new("IPv4 field has octet with leading zero"));
                }
                octet = octet * 10 + u16::try_from(character.to_digit(10).unwrap_or(0)).unwrap_or(0);
                digits += 1;
                if octet > 255 {
                    return Err(Fault::new("IPv4 field has value >255"));
                }
            }
            '.' if digits == 0 || at + 1 == text.len() => {
                let rest = text.get(at..).unwrap_or_default();
                return Err(Fault::at("IPv4 field must have at least one digit", rest));
            }
            '.' if octets.len() == 3 => return Err(Fault::new("IPv4 address too long")),
            '.' => {
                octets.push(octet as u8);
                (octet, digits) = (0, 0);
            }
            _ => return Err(Fault::at("unexpected character", text.get(at..).unwrap_or_default())),
        }
    }
    octets.push(octet as u8);
    octets.try_into().map_err(|_| Fault::new("IPv4 address too short"))
}

fn ipv6(text: &str) -> Result<Addr, Fault<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(Fault::new("zone must be a non-empty string")),
        Some((address, zone)) => (address, zone),
        None => (text, ""),
    };
    // Groups of 16 bits, and the position of `::` among them.
    let mut groups: Vec<u16> = Vec::new();
    let mut ellipsis = None;
    if let Some(behind) = rest.strip_prefix("::") {
        (ellipsis, rest) = (Some(0), behind);
    }
    while !(groups.len() == 8 || rest.is_empty() && ellipsis == Some(groups.len())) {
        let digits = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let (group, behind) = rest.split_at(digits);
        match digits {
            0 => {
                let problem = "each colon-separated field must have at least one digit";
                return Err(Fault::at(problem, rest));
            }
            1..=4 => {}
            _ => return Err(Fault::at("each group must have 4 or less digits", rest)),
        }
        if behind.starts_with('.') {
            if ellipsis.is_none() && groups.len() != 6 {
                let problem = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err(Fault::at(problem, rest));
            }
            if groups.len() > 6 {
                let problem = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err(Fault::at(problem, rest));
            }
            let [a, b, c, d] = ipv4(rest)?;
            groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            rest = "";
            break;
        }
        groups.push(u16::from_str_radix(group, 16).unwrap_or_default());
        rest = behind;
        if rest.is_empty() {
            break;
        }
        let Some(behind) = rest.strip_prefix(':') else {
            return Err(Fault::at("unexpected character, want colon", rest));
        };
        if behind.is_empty() {
            return Err(Fault::at("colon must be followed by more characters", rest));
        }
        rest = behind;
        if let Some(behind) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(Fault::at("multiple :: in address", rest));
            }
            (ellipsis, rest) = (Some(groups.len()), behind);
        }
    }
    if !rest.is_empty() {
        return Err(Fault::at("trailing garbage after address", rest));
    }
    match ellipsis {
        None if groups.len() < 8 => return Err(Fault::new("address string too short")),
        Some(_) if groups.len() == 8 => {
            return Err(Fault::new("the :: must expand to at least one field of zeros"));
        }
        Some(at) => {
            let zeros = std::iter::repeat_n(0, 8 - groups.len());
            groups.splice(at..at, zeros);
        }
        None => {}
    }
    let groups: [u16; 8] = groups.try_into().map_err(|_| Fault::new("address string too long"))?;
    Ok(Addr {
        ip: Ipv6Addr::from(groups).into(),
        zone: zone.to_owned(),
    })
}
