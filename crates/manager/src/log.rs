//! The log, and its level at run time.
//!
//! [`init`] sets up log lines on standard error, as JSON or text. What a reconcile logs carries its controller, object and
//! pass. The level can be changed while the operator runs: [`Level::set`], or over HTTP at [`PATH`] of a metrics server with
//! [reviews](crate::probes::Server::with_log_level).
//!
//! ```sh
//! curl --insecure -H "Authorization: Bearer $TOKEN" -X PUT -d info,kube=debug https://localhost:8443/debug/log-level
//! ```
use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request, StatusCode, body::Incoming};
use tracing::Subscriber;
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    reload::{self, Handle},
    util::SubscriberInitExt as _,
};

use crate::{
    listener::{Answer, text},
    options::{LogFormat, Options},
};

/// Where a metrics server serves the level.
pub const PATH: &str = "/debug/log-level";

/// A longer level is not one.
const LONGEST: usize = 1 << 10;

/// The log cannot be set up, or not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The level is not one.
    #[error(
        "invalid log level {0:?}: expected error, warn, info, debug, trace or off, or directives such as \"info,kube=debug\""
    )]
    Level(String),
    /// There is a log already.
    #[error("the log is set up already: {0}")]
    Twice(String),
    /// The log is gone.
    #[error("cannot change the log level: {0}")]
    Gone(String),
}

/// The level of the log. Clones are the same level.
#[derive(Clone)]
pub struct Level(Handle<Targets, Registry>);

impl Level {
    /// Sets the level, or directives.
    ///
    /// # Errors
    /// When `level` is not one.
    pub fn set(&self, level: &str) -> Result<(), Error> {
        let targets = parse(level)?;
        self.0.reload(targets).map_err(|error| Error::Gone(error.to_string()))
    }

    /// The level as it is.
    pub fn get(&self) -> String {
        self.0.with_current(ToString::to_string).unwrap_or_default()
    }
}

/// Sets up the log of the process.
///
/// # Errors
/// When the level is not one, or there is a log already.
pub fn init(options: &Options) -> Result<Level, Error> {
    // Not `EnvFilter`: it also filters by fields of spans, for which it brings a regular expression engine.
    let (filter, handle) = reload::Layer::new(parse(&options.log_level)?);
    let registry = tracing_subscriber::registry().with(filter);
    let done = match options.log_format {
        LogFormat::Json => registry.with(json(std::io::stderr)).try_init(),
        LogFormat::Text => registry.with(fmt::layer().with_writer(std::io::stderr)).try_init(),
    };
    done.map_err(|error| Error::Twice(error.to_string()))?;
    Ok(Level(handle))
}

/// A line for each event, with the span that it is in.
fn json<S, W>(writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer()
        .with_writer(writer)
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
}

/// A level or directives; also what zap calls its levels.
fn parse(text: &str) -> Result<Targets, Error> {
    let text = text.trim();
    let level = match text {
        "1" => "debug",
        "dpanic" | "panic" | "fatal" => "error",
        // zap's verbosity is any number.
        number if number.parse::<u8>().is_ok_and(|number| number > 1) => "trace",
        other => other,
    };
    let invalid = || Error::Level(text.to_owned());
    if level.is_empty() {
        return Err(invalid());
    }
    // `Targets` takes a word that is not a level for a target.
    let is_directive =
        |part: &str| part.contains('=') || part.parse::<tracing_subscriber::filter::LevelFilter>().is_ok();
    if !level.split(',').all(is_directive) {
        return Err(invalid());
    }
    level.parse().map_err(|_| invalid())
}

/// Answers a request for [`PATH`].
pub(crate) async fn answer(level: &Level, request: Request<Incoming>) -> Answer {
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return text(StatusCode::OK, format!("{}\n", level.get()));
    }
    if request.method() != Method::PUT {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed: use GET or PUT\n".to_owned(),
        );
    }
    let Ok(body) = Limited::new(request.into_body(), LONGEST).collect().await else {
        return text(
            StatusCode::BAD_REQUEST,
            format!("expected a log level of at most {LONGEST} bytes\n"),
        );
    };
    let wanted = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    match level.set(&wanted) {
        Ok(()) => {
            tracing::warn!(level = wanted.trim(), "log level changed");
            text(StatusCode::OK, format!("{}\n", level.get()))
        }
        Err(error) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::{
        backoff::Backoff,
        metrics::Metrics,
        queue::WorkQueue,
        shutdown::CancellationToken,
        worker::{self, Done, Limits},
    };

    #[test]
    fn levels_directives_and_those_of_zap() {
        for (text, level) in [
            ("info", "info"),
            (" debug\n", "debug"),
            ("1", "debug"),
            ("4", "trace"),
            ("panic", "error"),
        ] {
            assert_eq!(parse(text).unwrap(), level.parse().unwrap(), "{text}");
        }
        assert!(
            parse("info,kube=debug")
                .unwrap()
                .would_enable("kube", &tracing::Level::DEBUG)
        );
        for wrong in ["", "loud", "info,loud", "kube=loud"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid log level {wrong:?}: expected ")),
                "{error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_pass_logs_says_whose_pass_it_is_at_each_level() {
        for level in ["debug", "info", "warn", "error"] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let lines = tracing_subscriber::registry()
                .with(parse(level).unwrap())
                .with(json(Arc::new(file.reopen().unwrap())));
            let guard = tracing::subscriber::set_default(lines);
            let queue = Arc::new(WorkQueue::new(Backoff::default(), None));
            queue.add("ns/name".to_owned());
            let limits = Limits {
                concurrency: 1,
                time: Duration::from_secs(1),
            };
            let (metrics, stop) = (Metrics::new().workers("test"), CancellationToken::new());
            let work = |_| async {
                tokio::task::yield_now().await;
                tracing::error!("I was here");
                Ok::<_, String>(Done::nothing("settled"))
            };
            let passes = worker::run(queue, limits, metrics, stop.clone(), work);
            tokio::join!(passes, async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                stop.cancel();
            });
            drop(guard);
            let text = std::fs::read_to_string(file.path()).unwrap();
            let line = text.lines().find(|line| line.contains("I was here")).unwrap();
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let span = json!({ "name": "reconcile", "controller": "test", "object": "ns/name", "pass": 1 });
            assert_eq!(line["span"], span, "{level}");
        }
    }
}
