//! The health service: SERVING as soon as there is an index, for every service name, as opm answers.

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::current::Current;

/// Answers probes.
#[derive(Clone)]
pub struct Service {
    current: Current,
}

impl Service {
    /// Reports on `current`.
    pub fn new(current: Current) -> Self {
        Service { current }
    }
}

fn response(serving: bool) -> HealthCheckResponse {
    let status = if serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(response(self.current.get().is_some())))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let changes = tokio_stream::wrappers::WatchStream::new(self.current.subscribe());
        Ok(Response::new(Box::pin(
            changes.map(|index| Ok(response(index.is_some()))),
        )))
    }
}
