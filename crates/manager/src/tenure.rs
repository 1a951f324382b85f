//! How long this replica may act as the leader.
//!
//! Another replica may lead from when the deadline of the lease has passed. A process that was stopped or blocked for that long
//! notices this late: its timers and tasks continue where they were. Therefore each reconcile checks the deadline before it begins,
//! and each request and each connection before it sends.
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use hyper::{
    Request, Uri,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_util::client::legacy::connect::{Connected, Connection};
use kube::{Client, client::Body};
use tokio::time::Instant;
use tower::{Layer as _, Service, filter::FilterLayer};

use crate::transport::service;

/// Until when this replica leads. Clones share it. Without an election, and before the first, it never ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenure(Arc<Mutex<Option<Instant>>>);

/// The deadline has passed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not sent: the lease was not renewed in time, so another replica may lead")]
pub(crate) struct Over;

impl Tenure {
    /// This replica leads until `deadline`.
    pub(crate) fn extend(&self, deadline: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
    }

    /// True from the deadline on.
    pub(crate) fn is_over(&self) -> bool {
        let deadline = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// # Errors
    /// [`Over`] from the deadline on.
    pub(crate) fn check(&self) -> Result<(), Over> {
        if self.is_over() { Err(Over) } else { Ok(()) }
    }

    /// A layer of a client that passes requests while the tenure lasts.
    pub(crate) fn filter(&self) -> FilterLayer<impl Fn(Request<Body>) -> Result<Request<Body>, Over> + Clone + use<>> {
        let tenure = self.clone();
        FilterLayer::new(move |request| tenure.check().map(|()| request))
    }

    /// A client that sends through `client` while the tenure lasts.
    pub(crate) fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        Client::new(self.filter().layer(service(client)), namespace)
    }
}

/// A connector whose connections send nothing after the tenure: a request may have waited for its connection.
#[derive(Clone)]
pub(crate) struct Guarded<T> {
    inner: T,
    tenure: Tenure,
}

impl<T> Guarded<T> {
    pub(crate) fn new(inner: T, tenure: Tenure) -> Self {
        Self { inner, tenure }
    }
}

impl<T> Service<Uri> for Guarded<T>
where
    T: Service<Uri>,
    T::Future: Send + 'static,
{
    type Response = Guarded<T::Response>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, T::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), T::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (connecting, tenure) = (self.inner.call(server), self.tenure.clone());
        Box::pin(async move { Ok(Guarded::new(connecting.await?, tenure)) })
    }
}

impl<T: Read + Unpin> Read for Guarded<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: Write + Unpin> Write for Guarded<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.tenure.check().map_err(io::Error::other)?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.tenure.check().map_err(io::Error::other)?;
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }
}

impl<T: Connection> Connection for Guarded<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering::SeqCst},
        time::Duration,
    };

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::transport::Limits;

    /// The number of requests that reach the server, and its address.
    async fn server() -> (Arc<AtomicU32>, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        counted.fetch_add(1, SeqCst);
                        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (count, format!("http://{address}/"))
    }

    async fn version(client: &Client) -> Result<String, kube::Error> {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        client.request_text(request).await
    }

    fn config(server: &str) -> kube::Config {
        let mut config = kube::Config::new(server.parse().unwrap());
        config.default_retry = false;
        config
    }

    #[tokio::test]
    async fn nothing_is_sent_after_the_deadline() {
        let (count, server) = server().await;
        let tenure = Tenure::default();
        let given = tenure.guard(crate::connection::client(config(&server)).unwrap());
        nothing_is_sent_by(&given, &tenure, &count).await;
        let tenure = Tenure::default();
        let requests = crate::metrics::Metrics::new().requests("api");
        let own = crate::connection::client_within(config(&server), &tenure, Limits::default(), requests);
        nothing_is_sent_by(&own.unwrap(), &tenure, &count).await;
    }

    async fn nothing_is_sent_by(client: &Client, tenure: &Tenure, count: &AtomicU32) {
        let before = count.load(SeqCst);
        version(client).await.expect("without an election");
        tenure.extend(Instant::now() + Duration::from_secs(3600));
        version(client).await.expect("while it leads");
        tenure.extend(Instant::now());
        let error = version(client).await.expect_err("the deadline has passed");
        assert!(format!("{error:?}").contains("Over"), "{error:?}");
        assert_eq!(count.load(SeqCst), before + 2);
        tenure.extend(Instant::now() + Duration::from_secs(3600));
        version(client).await.expect("after a renewal");
    }

    /// The request passed its check, and its connection was made later.
    #[tokio::test]
    async fn nothing_is_sent_through_a_connection_after_the_deadline() {
        let (count, server) = server().await;
        let tenure = Tenure::default();
        let client = crate::connection::builder(config(&server), &tenure).unwrap().build();
        version(&client).await.expect("without an election");
        tenure.extend(Instant::now());
        // On the connection that is open, then on a new one.
        for _ in 0..2 {
            assert!(version(&client).await.is_err());
        }
        assert_eq!(count.load(SeqCst), 1);
    }
}
