//! Blobs: fetching with resumption, uploading with resumption, chunks and mounts.

use std::io::{BufReader, Read, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::bufread::MultiGzDecoder;
use olmkit::temporary::File;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, LOCATION, RANGE};
use reqwest::{Body, Response, Url};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::answer::is_gzip_encoded;
use super::error::Error;
use super::peer::Peer;
use super::progress::Transfer;
use super::{certificates, retry};
use crate::digest::Hasher;
use crate::layout::Layout;
use crate::limits::{self, INTERRUPTIONS, REDIRECTS, SLOWEST_BYTES};
use crate::spec::Descriptor;

/// Blobs up to this size are sent in one request. There is little to resume.
const ONE_REQUEST: u64 = 1 << 20;
/// The chunk size to fall back to if a proxy reports that a request is too large.
const FALLBACK_CHUNK: u64 = 5 << 20;
/// How much of a file is read at once while it is sent.
const READ_SIZE: usize = 128 << 10;

/// How the registry has a blob without an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Existed,
    Mounted,
}

impl Arrival {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Existed => "already there",
            Self::Mounted => "mounted from another repository",
        }
    }
}

/// Counts failures: in a row without progress, and in all.
struct Failures {
    in_a_row: u32,
    in_all: u32,
    position: u64,
}

impl Failures {
    fn new() -> Self {
        Self {
            in_a_row: 0,
            in_all: 0,
            position: 0,
        }
    }

    /// Notes a failure at a position. True while another attempt makes sense.
    fn again(&mut self, position: u64, attempts: u32) -> bool {
        if position >= self.position.saturating_add(SLOWEST_BYTES) {
            self.in_a_row = 0;
            self.position = position;
        }
        self.in_a_row += 1;
        self.in_all += 1;
        self.in_a_row < attempts && self.in_all < INTERRUPTIONS
    }
}

/// Why a download stopped.
enum Interruption {
    Ended,
    Slow,
    Failed(reqwest::Error),
}

/// True if a transfer comes forward.
struct Pace {
    time: Duration,
    since: Instant,
    from: u64,
}

impl Pace {
    fn new(time: Duration, from: u64) -> Self {
        Pace {
            time,
            since: Instant::now(),
            from,
        }
    }

    /// Returns true if less than the least came in the time for it.
    fn is_too_slow(&mut self, position: u64) -> bool {
        if self.since.elapsed() < self.time {
            return false;
        }
        let slow = position < self.from.saturating_add(SLOWEST_BYTES);
        *self = Pace::new(self.time, position);
        slow
    }
}

impl Peer<'_> {
    /// Fetches a blob into a layout. It gets its name there only after size and digest were found right.
    pub(super) async fn fetch_blob(
        &self,
        blob: &Descriptor,
        layout: &Layout,
        transfer: &dyn Transfer,
    ) -> Result<(), Error> {
        let action = format!("pull blob {} of {}", blob.digest, self.name());
        let url = self.url(&format!("blobs/{}", blob.digest));
        let mut file = layout.temporary()?;
        let mut hasher = Hasher::new(blob.digest.algorithm());
        let mut position = 0;
        let mut failures = Failures::new();
        while position < blob.size || position == 0 {
            let request = |http: &reqwest::Client| {
                let request = http.get(&url).header(ACCEPT_ENCODING, "identity");
                match position {
                    0 => request,
                    _ => request.header(RANGE, format!("bytes={position}-")),
                }
            };
            let mut response = self.send_for_blob(&action, request).await?;
            match response.status().as_u16() {
                206 if starts_at(response.headers(), position) => {}
                200 | 206 | 416 if position > 0 => {
                    // No ranges here: start over.
                    file = layout.temporary()?;
                    hasher = Hasher::new(blob.digest.algorithm());
                    let whole = response.status().as_u16() == 200;
                    position = 0;
                    if !whole {
                        if !failures.again(0, self.attempts()) {
                            return Err(self.protocol(&action, "it does not serve the requested range".to_owned()));
                        }
                        continue;
                    }
                }
                200 => {}
                _ => {
                    return Err(self
                        .refused(
                            &action,
                            &format!("blob {} in {}", blob.digest, self.repository),
                            response,
                        )
                        .await);
                }
            }
            let encoded = position == 0 && is_gzip_encoded(response.headers());
            let most = if encoded { encoded_size(blob.size) } else { blob.size };
            let mut pace = Pace::new(self.client.options.answer(), position);
            let interruption = loop {
                if pace.is_too_slow(position) {
                    break Interruption::Slow;
                }
                match response.chunk().await {
                    Ok(Some(chunk)) => {
                        position += chunk.len() as u64;
                        if position > most {
                            let problem = format!("the blob is longer than the {} bytes in its manifest", blob.size);
                            return Err(self.protocol(&action, problem));
                        }
                        hasher.update(&chunk);
                        file.write_all(&chunk)
                            .map_err(crate::Error::file("write", file.path()))?;
                        transfer.position(position);
                    }
                    Ok(None) => break Interruption::Ended,
                    Err(error) => break Interruption::Failed(error),
                }
            };
            if encoded && matches!(interruption, Interruption::Ended) {
                let raw = std::mem::replace(&mut hasher, Hasher::new(blob.digest.algorithm())).finish();
                // Some stores label gzip layers so. The bytes themselves are the blob then.
                if raw == blob.digest && position == blob.size {
                    return layout.persist(file, &blob.digest).map_err(Error::from);
                }
                (file, hasher, position) = match decode(&file, blob, layout)? {
                    Ok(decoded) => decoded,
                    Err(error) => {
                        let problem = format!("it labels the answer as gzip, and the content is damaged: {error}");
                        return Err(self.protocol(&action, problem));
                    }
                };
                if position != blob.size {
                    let problem = format!("the blob has another size than the {} bytes in its manifest", blob.size);
                    return Err(self.protocol(&action, problem));
                }
                break;
            }
            if position == blob.size && !encoded {
                break;
            }
            let (reason, attempts) = match &interruption {
                Interruption::Failed(error) => {
                    let why = certificates::describe(error);
                    let reason = format!("broke off after {position} of {} bytes ({why})", blob.size);
                    (reason, self.attempts_after(error))
                }
                Interruption::Ended => {
                    let reason = format!("ended after {position} of {} bytes", blob.size);
                    (reason, self.attempts())
                }
                Interruption::Slow => {
                    let reason = format!("became too slow after {position} of {} bytes", blob.size);
                    (reason, limits::LATE_ATTEMPTS)
                }
            };
            if !failures.again(position, attempts) {
                let attempts = super::transport::attempts_text(failures.in_all);
                return Err(Error::Unreachable {
                    action,
                    registry: self.endpoint.host.clone(),
                    problem: reason,
                    attempts,
                    hint: "; nothing was kept".to_owned(),
                });
            }
            self.pause(&action, failures.in_a_row, &reason, None).await;
            if encoded {
                (file, hasher, position) = (layout.temporary()?, Hasher::new(blob.digest.algorithm()), 0);
            }
        }
        let actual = hasher.finish();
        if actual != blob.digest {
            let (registry, what) = (self.endpoint.host.clone(), format!("a blob of {}", self.name()));
            return Err(Error::Corrupt {
                registry,
                what,
                expected: blob.digest.clone(),
                actual,
            });
        }
        layout.persist(file, &blob.digest)?;
        Ok(())
    }

    /// Returns true if the repository has a blob.
    async fn has_blob(&self, action: &str, blob: &Descriptor) -> Result<bool, Error> {
        let url = self.url(&format!("blobs/{}", blob.digest));
        // Some registries deny HEAD to users who may push. The upload itself decides then.
        Ok(self.send(action, |http| http.head(&url)).await?.status().as_u16() == 200)
    }

    /// Checks whether the repository has a blob, or can mount it from a related repository.
    pub(super) async fn find_blob(&self, blob: &Descriptor) -> Result<Option<Arrival>, Error> {
        let action = self.push_action(blob);
        if self.has_blob(&action, blob).await? {
            return Ok(Some(Arrival::Existed));
        }
        for from in &self.mount_from {
            let url = self.url(&format!("blobs/uploads/?mount={}&from={from}", blob.digest));
            let time = self.client.options.answer();
            let request = |http: &reqwest::Client| http.post(&url).header(CONTENT_LENGTH, 0).timeout(time);
            // Who may not read the other repository uploads the blob.
            let Ok(response) = self.send_for(&action, Some(from), request).await else {
                continue;
            };
            match response.status().as_u16() {
                201 => return Ok(Some(Arrival::Mounted)),
                // The registry opened an upload instead: it would, so use it no further than to end it.
                202 => self.cancel(&response).await,
                _ => {}
            }
        }
        Ok(None)
    }

    /// Uploads a blob of a layout.
    pub(super) async fn upload_blob(
        &self,
        blob: &Descriptor,
        layout: &Layout,
        transfer: &dyn Transfer,
    ) -> Result<(), Error> {
        let action = self.push_action(blob);
        layout.check_size(blob)?;
        self.upload(&action, blob, layout, transfer).await
    }

    fn push_action(&self, blob: &Descriptor) -> String {
        format!("push blob {} to {}", blob.digest, self.name())
    }

    async fn cancel(&self, response: &Response) {
        if let Ok(url) = self.location("cancel an upload", response.headers(), response.url()) {
            let _ = self
                .send_once("cancel an upload", 0, |http| http.delete(url.clone()))
                .await;
        }
    }

    async fn upload(
        &self,
        action: &str,
        blob: &Descriptor,
        layout: &Layout,
        transfer: &dyn Transfer,
    ) -> Result<(), Error> {
        let path = &layout.blob_path(&blob.digest);
        let mut failures = Failures::new();
        let mut chunk = self.client.options.chunk_size.filter(|size| *size > 0);
        let mut requests = Requests::BySize;
        let mut fell_back = false;
        loop {
            let url = self.url("blobs/uploads/");
            let response = self
                .send(action, |http| http.post(&url).header(CONTENT_LENGTH, 0))
                .await?;
            if response.status().as_u16() != 202 {
                return Err(self
                    .refused(action, &format!("repository {}", self.repository), response)
                    .await);
            }
            let session = self.location(action, response.headers(), response.url())?;
            if let Some(least) = least_chunk(response.headers()) {
                chunk = chunk.map(|chunk| chunk.max(least));
            }
            let upload = Upload {
                action,
                blob,
                layout,
                path,
                transfer,
                chunk,
                requests,
            };
            match self.upload_session(&upload, session, &mut failures).await? {
                Outcome::Done => return Ok(()),
                Outcome::TooLarge if requests == Requests::One => {
                    let problem = "413: the blob is too large for one request, and the registry rejects several";
                    return Err(self.protocol(action, problem.to_owned()));
                }
                Outcome::TooLarge if chunk.is_none_or(|chunk| chunk > FALLBACK_CHUNK) && !fell_back => {
                    fell_back = true;
                    let host = &self.endpoint.host;
                    self.client.progress.note(&format!(
                        "{host} rejects the blob as too large for one request; sending it in chunks"
                    ));
                    chunk = Some(FALLBACK_CHUNK);
                }
                Outcome::TooLarge => {
                    return Err(self.protocol(
                        action,
                        "413: even small chunks are too large; a proxy in between limits the request size".to_owned(),
                    ));
                }
                // Not every registry takes a blob in the last request, and not every one takes it before.
                Outcome::Unsupported if blob.size <= ONE_REQUEST => requests = Requests::Several,
                Outcome::Unsupported => requests = Requests::One,
                Outcome::Restart => {}
            }
        }
    }

    /// Sends a blob through one upload session, resuming it after interruptions.
    async fn upload_session(
        &self,
        upload: &Upload<'_>,
        session: Url,
        failures: &mut Failures,
    ) -> Result<Outcome, Error> {
        let mut session = session;
        let mut position = 0;
        let size = upload.blob.size;
        let single = match upload.requests {
            Requests::BySize => size <= ONE_REQUEST && upload.chunk.is_none_or(|chunk| size <= chunk),
            Requests::One => true,
            Requests::Several => false,
        };
        while !single && position < size {
            let end = upload.chunk.map_or(size, |chunk| size.min(position + chunk));
            match self.send_piece(upload, &session, position, end).await? {
                Piece::Accepted(headers, url) => {
                    // Some registries name the address only once.
                    if headers.contains_key(LOCATION) {
                        session = self.location(upload.action, &headers, &url)?;
                    }
                    position = end;
                    upload.transfer.position(position);
                }
                Piece::TooLarge => return Ok(Outcome::TooLarge),
                Piece::Unsupported => return Ok(Outcome::Unsupported),
                Piece::Failed(reason, headers) => {
                    if !failures.again(position, self.attempts()) {
                        return Err(self.gave_up(upload.action, reason, failures.in_all));
                    }
                    self.pause(upload.action, failures.in_a_row, &reason, headers.as_ref())
                        .await;
                    match self.upload_status(upload.action, &session).await? {
                        Some((location, reached)) if reached <= size => (session, position) = (location, reached),
                        _ => return Ok(Outcome::Restart),
                    }
                }
            }
        }
        let start = if single { 0 } else { size };
        self.finish_upload(upload, session, start, failures).await
    }

    /// The last request of an upload names the digest. A small blob travels in it.
    async fn finish_upload(
        &self,
        upload: &Upload<'_>,
        session: Url,
        start: u64,
        failures: &mut Failures,
    ) -> Result<Outcome, Error> {
        let mut url = session;
        url.query_pairs_mut()
            .append_pair("digest", &upload.blob.digest.to_string());
        let size = upload.blob.size;
        let bytes = if start == 0 && size > 0 && size <= ONE_REQUEST {
            upload.layout.read_blob(upload.blob)?
        } else {
            Vec::new()
        };
        let length = size - start;
        let request = |http: &reqwest::Client, url: &Url| {
            let request = http
                .put(url.clone())
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(CONTENT_LENGTH, length);
            if length <= ONE_REQUEST {
                request.body(bytes.clone())
            } else {
                request.body(file_body(upload.path, start, size))
            }
        };
        let result = self.send_redirected(upload.action, length, url, request).await?;
        let (reason, headers) = match result {
            Ok(response) => match response.status().as_u16() {
                201 | 204 => {
                    upload.transfer.position(upload.blob.size);
                    return Ok(Outcome::Done);
                }
                413 => return Ok(Outcome::TooLarge),
                status if is_unsupported(status) && start == 0 && upload.may_change() => {
                    return Ok(Outcome::Unsupported);
                }
                status if retry::is_transient(status) || status == 404 || status == 416 => (
                    format!("answered {}", response.status()),
                    Some(response.headers().clone()),
                ),
                _ => {
                    return Err(self
                        .refused(upload.action, &format!("repository {}", self.repository), response)
                        .await);
                }
            },
            Err(error) => (certificates::explain(&error, &self.endpoint.host).0, None),
        };
        if !failures.again(upload.blob.size, self.attempts()) {
            return Err(self.gave_up(upload.action, reason, failures.in_all));
        }
        self.pause(upload.action, failures.in_a_row, &reason, headers.as_ref())
            .await;
        // The request may have been carried out and only its answer lost.
        let there = self.has_blob(upload.action, upload.blob).await?;
        Ok(if there { Outcome::Done } else { Outcome::Restart })
    }

    async fn send_piece(&self, upload: &Upload<'_>, session: &Url, start: u64, end: u64) -> Result<Piece, Error> {
        let file = olmkit::limits::open(upload.path).map_err(crate::Error::file("read", upload.path))?;
        drop(file);
        let whole = start == 0 && end == upload.blob.size;
        let request = |http: &reqwest::Client, url: &Url| {
            let request = http
                .patch(url.clone())
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(CONTENT_LENGTH, end - start);
            // A whole blob in one request is a plain stream. Only pieces need to say where they belong.
            let request = if whole {
                request
            } else {
                request.header(CONTENT_RANGE, format!("{start}-{}", end - 1))
            };
            request.body(file_body(upload.path, start, end))
        };
        let result = self
            .send_redirected(upload.action, end - start, session.clone(), request)
            .await?;
        match result {
            Ok(response) => match response.status().as_u16() {
                200..=204 => Ok(Piece::Accepted(response.headers().clone(), response.url().clone())),
                413 => Ok(Piece::TooLarge),
                status if is_unsupported(status) && whole && upload.may_change() => Ok(Piece::Unsupported),
                status if retry::is_transient(status) || status == 404 || status == 416 => Ok(Piece::Failed(
                    format!("answered {}", response.status()),
                    Some(response.headers().clone()),
                )),
                _ => Err(self
                    .refused(upload.action, &format!("repository {}", self.repository), response)
                    .await),
            },
            Err(error) => Ok(Piece::Failed(
                certificates::explain(&error, &self.endpoint.host).0,
                None,
            )),
        }
    }

    /// As [`Peer::send_once`]. Follows redirects on the registry itself. The HTTP client cannot, because it cannot send a stream twice.
    async fn send_redirected(
        &self,
        action: &str,
        bytes: u64,
        mut url: Url,
        make: impl Fn(&reqwest::Client, &Url) -> reqwest::RequestBuilder,
    ) -> Result<Result<Response, reqwest::Error>, Error> {
        let mut redirects = 0;
        loop {
            let result = self.send_once(action, bytes, |http| make(http, &url)).await?;
            match &result {
                Ok(response) if matches!(response.status().as_u16(), 307 | 308) && redirects < REDIRECTS => {
                    url = self.location(action, response.headers(), response.url())?;
                    redirects += 1;
                }
                _ => return Ok(result),
            }
        }
    }

    /// The offset and URL of an upload. `None` if the registry no longer has it.
    async fn upload_status(&self, action: &str, session: &Url) -> Result<Option<(Url, u64)>, Error> {
        let response = self.send(action, |http| http.get(session.clone())).await?;
        if response.status().as_u16() != 204 {
            return Ok(None);
        }
        let location = self
            .location(action, response.headers(), response.url())
            .unwrap_or_else(|_| session.clone());
        let range = response
            .headers()
            .get(RANGE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let last = range
            .trim_start_matches("bytes=")
            .split_once('-')
            .and_then(|(_, last)| last.parse::<u64>().ok());
        // "0-0" means both nothing and one byte. Taking it for nothing is always right: a start over costs little.
        Ok(last.filter(|last| *last > 0).map(|last| (location, last + 1)))
    }

    /// The next URL of a session: the `Location` header, which may be relative.
    fn location(&self, action: &str, headers: &HeaderMap, base: &Url) -> Result<Url, Error> {
        let text = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let url = text.and_then(|text| base.join(text).ok());
        let url = url.ok_or_else(|| self.protocol(action, format!("upload location {text:?} is not a URL")))?;
        // Each request of the session has the authorization. `base` may be another host already: that of a
        // redirected answer.
        let origin = url.origin().ascii_serialization();
        self.endpoint
            .own_address(url)
            .ok_or_else(|| self.protocol(action, format!("it redirects the upload to another server, {origin}")))
    }

    fn gave_up(&self, action: &str, problem: String, failed: u32) -> Error {
        Error::Unreachable {
            action: action.to_owned(),
            registry: self.endpoint.host.clone(),
            problem,
            attempts: super::transport::attempts_text(failed),
            hint: String::new(),
        }
    }
}

struct Upload<'u> {
    action: &'u str,
    blob: &'u Descriptor,
    layout: &'u Layout,
    path: &'u Path,
    transfer: &'u dyn Transfer,
    chunk: Option<u64>,
    requests: Requests,
}

impl Upload<'_> {
    /// Returns true if the other way to send the blob was not tried.
    fn may_change(&self) -> bool {
        self.requests == Requests::BySize && self.chunk.is_none()
    }
}

/// The requests that carry the content of a blob.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Requests {
    /// One for small blobs, several for large ones.
    BySize,
    /// The last request of the upload, which names the digest.
    One,
    /// Requests before the last one.
    Several,
}

/// Returns true if a registry may accept the same content in another kind of request.
fn is_unsupported(status: u16) -> bool {
    matches!(status, 400 | 405 | 411 | 415 | 501)
}

enum Piece {
    Accepted(HeaderMap, Url),
    TooLarge,
    Unsupported,
    Failed(String, Option<HeaderMap>),
}

enum Outcome {
    Done,
    Restart,
    TooLarge,
    Unsupported,
}

/// Streams a part of a file.
fn file_body(path: &Path, start: u64, end: u64) -> Body {
    let path = path.to_owned();
    let state = (None, end - start);
    let stream = futures::stream::try_unfold(state, move |(file, left): (Option<tokio::fs::File>, u64)| {
        let path = path.clone();
        async move {
            if left == 0 {
                return Ok::<_, std::io::Error>(None);
            }
            let mut file = match file {
                Some(file) => file,
                None => {
                    let mut file = tokio::fs::File::from_std(olmkit::limits::open(&path)?);
                    file.seek(SeekFrom::Start(start)).await?;
                    file
                }
            };
            let mut buffer = vec![0; READ_SIZE.min(usize::try_from(left).unwrap_or(READ_SIZE))];
            let count = file.read(&mut buffer).await?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            buffer.truncate(count);
            Ok(Some((buffer, (Some(file), left - count as u64))))
        }
    });
    Body::wrap_stream(stream)
}

/// The most bytes that gzip makes of a blob of this size, with some more for its header.
fn encoded_size(size: u64) -> u64 {
    size.saturating_add(size / 512).saturating_add(4096)
}

/// The content of a blob that a server compressed for the transfer, with the digest and size of the content, or the reason
/// why the answer cannot be decompressed.
fn decode(
    encoded: &File,
    blob: &Descriptor,
    layout: &Layout,
) -> Result<std::io::Result<(File, Hasher, u64)>, crate::Error> {
    let source = olmkit::limits::open(encoded.path()).map_err(crate::Error::file("read", encoded.path()))?;
    // One byte more shows that the content is too long.
    let mut content = MultiGzDecoder::new(BufReader::new(source)).take(blob.size.saturating_add(1));
    let mut file = layout.temporary()?;
    let mut hasher = Hasher::new(blob.digest.algorithm());
    let mut size = 0;
    let mut buffer = vec![0; READ_SIZE];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(Ok((file, hasher, size))),
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default();
                hasher.update(bytes);
                size += count as u64;
                file.write_all(bytes)
                    .map_err(crate::Error::file("write", file.path()))?;
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// The smallest piece that a registry accepts, except for the last one.
fn least_chunk(headers: &HeaderMap) -> Option<u64> {
    headers.get("oci-chunk-min-length")?.to_str().ok()?.trim().parse().ok()
}

/// Returns true if a partial answer begins where it was asked to.
fn starts_at(headers: &HeaderMap, position: u64) -> bool {
    let text = headers
        .get(CONTENT_RANGE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let start = text
        .trim_start_matches("bytes")
        .trim()
        .split('-')
        .next()
        .and_then(|start| start.parse::<u64>().ok());
    start == Some(position)
}
