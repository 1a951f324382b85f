//! A client for health probes, compatible with `grpc_health_probe`.

use std::time::Duration;

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// How a probe failed. The exit codes are those of `grpc_health_probe`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot be reached in time.
    #[error("cannot connect to {address}: {message}")]
    Connect {
        /// The address.
        address: String,
        /// The reason.
        message: String,
    },
    /// The call failed or timed out.
    #[error("health check of {address} failed: {message}")]
    Call {
        /// The address.
        address: String,
        /// The reason.
        message: String,
    },
    /// The server answered something else than SERVING.
    #[error("{address} is not serving: {status}")]
    Unhealthy {
        /// The address.
        address: String,
        /// The status in the answer.
        status: &'static str,
    },
}

impl Error {
    /// `grpc_health_probe`'s exit code: 2 no connection, 3 call failed, 4 not serving.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Connect { .. } => 2,
            Error::Call { .. } => 3,
            Error::Unhealthy { .. } => 4,
        }
    }
}

/// Checks if a server serves.
///
/// # Errors
/// The server does not serve the service, or cannot be reached.
pub async fn check(address: &str, service: &str, connect: Duration, call: Duration) -> Result<(), Error> {
    let target = if address.starts_with(':') {
        format!("localhost{address}")
    } else {
        address.to_owned()
    };
    let connection = |message: String| Error::Connect {
        address: address.to_owned(),
        message,
    };
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{target}"))
        .map_err(|error| connection(error.to_string()))?
        .connect_timeout(connect);
    let channel = tokio::time::timeout(connect, endpoint.connect())
        .await
        .map_err(|_| connection(format!("no answer within {}s", connect.as_secs_f64())))?
        .map_err(|error| connection(source_text(&error)))?;
    let request = HealthCheckRequest {
        service: service.to_owned(),
    };
    let failed = |message: String| Error::Call {
        address: address.to_owned(),
        message,
    };
    let answer = tokio::time::timeout(call, HealthClient::new(channel).check(request))
        .await
        .map_err(|_| failed(format!("no answer within {}s", call.as_secs_f64())))?
        .map_err(|status| failed(status.message().to_owned()))?;
    match answer.into_inner().status() {
        ServingStatus::Serving => Ok(()),
        other => Err(Error::Unhealthy {
            address: address.to_owned(),
            status: other.as_str_name(),
        }),
    }
}

/// The innermost cause, which is the informative one.
fn source_text(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
