//! The log, and its level at run time.
//!
//! [`init`] sets up log lines on standard error, as JSON or text. Log lines of a reconcile contain its controller, object
//! and number. The level can be changed while the operator runs: [`Level::set`], or over HTTP at [`PATH`] of a metrics server with
//! [reviews](crate::probes::Server::with_log_level). Below the level `trace` no line has the content of an object:
//! see [`without_content`].
//!
//! ```sh
//! curl --insecure -H "Authorization: Bearer $TOKEN" -X PUT -d info,kube=debug https://localhost:8443/debug/log-level
//! ```
use std::{
    io::IsTerminal as _,
    sync::{Arc, Mutex, PoisonError},
};

use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request, StatusCode, body::Incoming};
use tracing::{Level as Tracing, Subscriber};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
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
    /// The text is not a log level.
    #[error(
        "invalid log level {0:?}: expected error, warn, info, debug, trace or off, or directives such as \"info,kube=debug\""
    )]
    Level(String),
    /// There is a log already.
    #[error("the log is set up already: {0}")]
    Twice(String),
    /// The log was closed.
    #[error("cannot change the log level: {0}")]
    Gone(String),
}

/// The level of the log. Clones are the same level.
#[derive(Clone)]
pub struct Level {
    handle: Handle<Targets, Registry>,
    /// As it was set.
    set: Arc<Mutex<String>>,
}

/// Where kube logs the whole text of what it cannot deserialize, as a warning, and errors that quote a part of it.
const WITH_CONTENT: [(&str, LevelFilter); 2] = [
    ("kube_client::client", LevelFilter::ERROR),
    ("kube_runtime::watcher", LevelFilter::INFO),
];
/// Targets below the first of these that log no content.
const WITHOUT: [&str; 2] = ["kube_client::client::builder", "kube_client::client::tls"];

/// `targets` without what has the content of objects, Secrets too, unless they ask for it at the level `trace`.
/// For operators that set up their log themselves.
pub fn without_content(targets: Targets) -> Targets {
    let level = |target: &str| {
        let levels = [
            Tracing::TRACE,
            Tracing::DEBUG,
            Tracing::INFO,
            Tracing::WARN,
            Tracing::ERROR,
        ];
        let enabled = levels.into_iter().find(|level| targets.would_enable(target, level));
        enabled.map_or(LevelFilter::OFF, LevelFilter::from_level)
    };
    let kept = WITHOUT.map(|target| (target, level(target)));
    let limited = WITH_CONTENT
        .into_iter()
        .map(|(target, most)| (target, level(target), most))
        .filter(|(_, wanted, most)| *wanted != LevelFilter::TRACE && wanted > most)
        .map(|(target, _, most)| (target, most))
        .collect::<Vec<_>>();
    targets.with_targets(kept).with_targets(limited)
}

impl Level {
    /// Sets the level, or directives.
    ///
    /// # Errors
    /// When `level` is not one.
    pub fn set(&self, level: &str) -> Result<(), Error> {
        let targets = parse(level)?;
        let text = targets.to_string();
        let reloaded = self.handle.reload(without_content(targets));
        reloaded.map_err(|error| Error::Gone(error.to_string()))?;
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = text;
        Ok(())
    }

    /// The current level.
    pub fn get(&self) -> String {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sets up the log of the process.
///
/// # Errors
/// When the level is not one, or there is a log already.
pub fn init(options: &Options) -> Result<Level, Error> {
    // Not `EnvFilter`: it also filters by span fields, which requires a regular expression engine.
    let targets = parse(&options.log_level)?;
    let set = Arc::new(Mutex::new(targets.to_string()));
    let (filter, handle) = reload::Layer::new(without_content(targets));
    let registry = tracing_subscriber::registry().with(filter);
    let done = match options.log_format {
        LogFormat::Json => registry.with(json(std::io::stderr)).try_init(),
        // Colors only for people: a file or a pipe would get escape sequences.
        LogFormat::Text => {
            let lines = fmt::layer().with_ansi(std::io::stderr().is_terminal());
            registry.with(lines.with_writer(std::io::stderr)).try_init()
        }
    };
    done.map_err(|error| Error::Twice(error.to_string()))?;
    Ok(Level { handle, set })
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
    use std::time::Duration;

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

    /// The lines that kube logs about a malformed Secret, at each level.
    #[tokio::test]
    async fn no_content_of_an_object_is_logged_below_trace() {
        use hyper::{Request, Response};
        use k8s_openapi::api::core::v1::Secret;
        use kube::{Api, Client, client::Body};

        let service = tower::service_fn(|_: Request<Body>| async {
            let secret = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"data":{"password":"aHVudGVyMg=="},"type":7}"#;
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(secret.as_bytes().to_vec())))
        });
        let secrets: Api<Secret> = Api::namespaced(Client::new(service, "default"), "default");
        for (level, logged) in [
            ("info", false),
            ("debug", false),
            ("info,kube_client=debug", false),
            ("off,kube_client::client=warn", false),
            ("info,kube_client=trace", true),
            ("trace", true),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let lines = tracing_subscriber::registry()
                .with(without_content(parse(level).unwrap()))
                .with(json(Arc::new(file.reopen().unwrap())));
            let guard = tracing::subscriber::set_default(lines);
            let error = secrets.get("a").await.unwrap_err();
            tracing::error!(error = crate::explain::request(&error), "cannot read the Secret");
            drop(guard);
            let text = std::fs::read_to_string(file.path()).unwrap();
            assert_eq!(text.contains("aHVudGVyMg"), logged, "{level}: {text}");
        }
    }

    #[test]
    fn other_lines_of_the_client_stay() {
        let targets = without_content(parse("debug").unwrap());
        for target in ["kube_client::client::builder", "kube_client", "kube_runtime::reflector"] {
            assert!(targets.would_enable(target, &Tracing::DEBUG), "{target}");
        }
        assert!(targets.would_enable("kube_client::client", &Tracing::ERROR));
        assert!(targets.would_enable("kube_runtime::watcher", &Tracing::INFO));
    }

    #[tokio::test(start_paused = true)]
    async fn log_lines_name_their_reconcile_at_each_level() {
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
                owed: Duration::ZERO,
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
            let span =
                json!({ "name": "reconcile", "controller": "test", "object": "ns/name", "pass": 1, "cause": "added" });
            assert_eq!(line["span"], span, "{level}");
        }
    }
}
