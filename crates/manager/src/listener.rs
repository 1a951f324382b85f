//! Limits for clients of the manager's servers.
use std::time::Duration;

use http_body_util::Full;
use hyper::{Response, StatusCode, body::Bytes};
pub use olmkit_front::BindError;
#[cfg(feature = "tls")]
pub(crate) use olmkit_front::Wire;
pub(crate) use olmkit_front::{Handle, Limits, Listener};

/// A response as the servers here make it.
pub(crate) type Answer = Response<Full<Bytes>>;

/// An answer in plain text.
pub(crate) fn text(status: StatusCode, body: String) -> Answer {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}

/// The limits of a server of probes or metrics: some clients, which ask every few seconds and take what they asked for. A
/// further connection takes the place of the one that has been idle for longest: connections that are only held open must not
/// keep the kubelet's probe out.
pub(crate) fn observers() -> Limits {
    let limits = Limits {
        connections: 128,
        header_bytes: 16 << 10,
        handshake: Duration::from_secs(10),
        idle: Duration::from_secs(120),
        send: Duration::from_secs(30),
        ..Limits::default()
    };
    limits.within_descriptors(8)
}

/// The limits of a server of webhooks. All requests come from one client, the API server, on a connection for each that is
/// open, so there is room for as many as it opens at once, and what does not fit waits.
#[cfg(feature = "webhooks")]
pub(crate) fn webhooks() -> Limits {
    let limits = Limits {
        connections: 1024,
        // The largest answer is that to a conversion, and one piece.
        connection_bytes: 64 << 20,
        waiting_bytes: 16 << 20,
        header_bytes: 16 << 10,
        handshake: Duration::from_secs(10),
        // The API server keeps connections for 90 seconds. It must be the one that closes them: Go does not send a POST again
        // that meets the server's end of the connection, and with `failurePolicy: Fail` that would be a refused write.
        idle: Duration::from_secs(120),
        send: Duration::from_secs(30),
        // A handshake takes a while when hundreds of them begin at the same time.
        spared: Duration::from_secs(5),
        spared_proven: Duration::from_secs(5),
        // The API server learns from the endpoints, a moment after the process is unready, that it is to ask another replica.
        quiet: Duration::from_secs(1),
        ..Limits::default()
    };
    limits.within_descriptors(2)
}
