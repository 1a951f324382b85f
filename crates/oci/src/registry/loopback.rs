//! Detects hosts that are this machine. Registries there may use plain HTTP.

use std::net::IpAddr;

/// Returns true if a host (with or without port) is this machine itself.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in [
            "localhost",
            "localhost:5000",
            "LOCALHOST:5000",
            "127.0.0.1:5000",
            "127.8.9.1",
            "[::1]:5000",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "localhost.example.com",
            "10.0.0.1:5000",
            "registry",
            "[2001:db8::1]:5000",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
