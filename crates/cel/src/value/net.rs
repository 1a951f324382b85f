//! IP addresses and networks as the Kubernetes libraries read them.

use std::fmt;
use std::net::IpAddr;

use olmkit_go::netip;

/// A network: an address and how many of its leading bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address, which may have more bits than count.
    pub address: IpAddr,
    /// The bits that count.
    pub bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Reads an address, without a zone and not IPv4 mapped into IPv6.
pub(crate) fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let found = netip::parse_addr(text)
        .map_err(|problem| format!("IP Address {text:?} parse error during conversion from string: {problem}"))?;
    if !found.zone.is_empty() {
        return Err(format!("IP address {text:?} with zone value is not allowed"));
    }
    if is_mapped(found.ip) {
        return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
    }
    Ok(found.ip)
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// The bits of an address, the first one highest.
fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)) << 96,
        IpAddr::V6(ip) => u128::from(ip),
    }
}

fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

impl Cidr {
    /// Reads `address/bits`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let problem = |why: &str| {
            format!("network address parse error during conversion from string: netip.ParsePrefix({text:?}): {why}")
        };
        let (address, bits) = text.rsplit_once('/').ok_or_else(|| problem("no '/'"))?;
        let found = netip::parse_addr(address).map_err(|why| problem(&why))?;
        if !found.zone.is_empty() {
            return Err(problem("IPv6 zones cannot be present in a prefix"));
        }
        let is_plain = !bits.is_empty()
            && bits.bytes().all(|byte| byte.is_ascii_digit())
            && (bits == "0" || !bits.starts_with('0'));
        let bits = bits
            .parse::<u8>()
            .ok()
            .filter(|bits| is_plain && *bits <= width(found.ip));
        let bits = bits.ok_or_else(|| problem("bad bits after slash"))?;
        if is_mapped(found.ip) {
            return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
        }
        Ok(Self {
            address: found.ip,
            bits,
        })
    }

    pub(crate) fn contains_ip(self, ip: IpAddr) -> bool {
        self.address.is_ipv4() == ip.is_ipv4() && (number(self.address) ^ number(ip)) & mask(self.bits) == 0
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains_ip(other.address)
    }

    pub(crate) fn masked(self) -> Self {
        let kept = number(self.address) & mask(self.bits);
        let address = match self.address {
            IpAddr::V4(_) => u32::try_from(kept >> 96).map_or(self.address, |bits| IpAddr::V4(bits.into())),
            IpAddr::V6(_) => IpAddr::V6(kept.into()),
        };
        Self {
            address,
            bits: self.bits,
        }
    }
}

/// Properties of an address by the name of their function.
pub(crate) fn property(ip: IpAddr, name: &str) -> Option<bool> {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    Some(match name {
        "isUnspecified" => ip.is_unspecified(),
        "isLoopback" => ip.is_loopback(),
        "isLinkLocalMulticast" => match ip {
            IpAddr::V4(ip) => ip.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(ip) => ip.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        },
        "isLinkLocalUnicast" => is_link_local,
        "isGlobalUnicast" => {
            let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
            !(is_broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local)
        }
        _ => return None,
    })
}
