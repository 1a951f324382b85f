//! The address under which a cluster can reach this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Guesses this host's address as seen from the cluster: the source address of packets to a node, or to the API server
/// if there is no node address. With kind and k3d the API server is on loopback while the nodes are on a bridge of this
/// host, so nodes come first. Sends no packets.
pub fn guess(api_server: &str, nodes: &[IpAddr]) -> IpAddr {
    let server = host_and_port(api_server);
    let candidates = nodes.iter().map(|node| SocketAddr::new(*node, 6443)).chain(server);
    candidates
        .into_iter()
        .find_map(local_address_towards)
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

fn local_address_towards(target: SocketAddr) -> Option<IpAddr> {
    let unspecified: SocketAddr = if target.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(unspecified).ok()?;
    socket.connect(target).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified()).then_some(address)
}

fn host_and_port(url: &str) -> Option<SocketAddr> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next()?;
    let with_port = if authority.rsplit(']').next().is_some_and(|tail| tail.contains(':')) {
        authority.to_owned()
    } else {
        format!("{authority}:443")
    };
    with_port.to_socket_addrs().ok()?.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_api_server_without_nodes_is_reached_from_loopback() {
        assert_eq!(guess("https://127.0.0.1:6443/", &[]), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn urls_are_read() {
        assert_eq!(
            host_and_port("https://127.0.0.1:6443/x"),
            Some(([127, 0, 0, 1], 6443).into())
        );
        assert_eq!(host_and_port("https://127.0.0.1"), Some(([127, 0, 0, 1], 443).into()));
        assert_eq!(
            host_and_port("https://[::1]:6443"),
            Some((std::net::Ipv6Addr::LOCALHOST, 6443).into())
        );
    }
}
