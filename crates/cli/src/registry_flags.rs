//! Flags of every command that uses a registry, and the transfers' progress on a terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};
use olmkit::temporary::Directory;
use olmkit_oci::registry::{Cache, Client, NoProgress, Options, Platforms, Progress, Transfer};
use olmkit_oci::source::{Location, fetch};
use olmkit_oci::spec::Platform;

use crate::runtime::block_on;
use crate::terminal;

// Flags for registries. No doc comment: the commands that flatten this would show it as their own help.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RegistryFlags {
    /// Use plain HTTP for registries (not needed for registries on this machine)
    #[arg(long, visible_alias = "plain-http", global = true, help_heading = "Registry options")]
    pub use_http: bool,
    /// Accept any certificate
    #[arg(long, visible_alias = "skip-tls", global = true, help_heading = "Registry options")]
    pub skip_tls_verify: bool,
    /// Trust the certificate authorities of this PEM file in addition to the system's
    #[arg(long, value_name = "FILE", global = true, help_heading = "Registry options")]
    pub ca_file: Option<PathBuf>,
    /// Take credentials from this file only [default: the places of podman and Docker, or REGISTRY_AUTH_FILE]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Registry options")]
    pub authfile: Option<PathBuf>,
    /// Take mirrors from this registries.conf only
    #[arg(long, value_name = "FILE", global = true, help_heading = "Registry options")]
    pub registries_conf: Option<PathBuf>,
    /// Send blobs in pieces of at most this many bytes
    #[arg(long, value_name = "BYTES", global = true, help_heading = "Registry options")]
    pub chunk_size: Option<u64>,
    /// Pull at most this many bytes for one image [default: 16 GiB]
    #[arg(long, value_name = "BYTES", global = true, help_heading = "Registry options")]
    pub max_image_size: Option<u64>,
    /// Give up on a registry that does not answer within this time, or sends less than 64 KiB in it [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), global = true, help_heading = "Registry options")]
    pub registry_timeout: Option<u64>,
    /// Neither read nor fill the cache of pulled blobs
    #[arg(long, global = true, help_heading = "Registry options")]
    pub no_cache: bool,
}

impl RegistryFlags {
    /// Unpacks a bundle image into a temporary directory, and returns its labels too.
    ///
    /// # Errors
    /// The string is not an image reference, or the image cannot be pulled or unpacked.
    pub fn unpack_bundle(&self, image: &str) -> anyhow::Result<(Directory, BTreeMap<String, String>)> {
        let location: Location = image.parse()?;
        let client = self.client()?;
        let platform = Platform::host();
        note!("Unpacking {location}");
        let fetched = block_on(fetch(&client, &location, &Platforms::One(platform.clone())))??;
        let directory = Directory::new("bundle")?;
        fetched.unpack(&platform, directory.path(), &[])?;
        Ok((directory, fetched.image(&platform)?.config.config.labels))
    }

    /// A client configured by the flags, which shows its progress on standard error.
    pub fn client(&self) -> anyhow::Result<Client> {
        let options = Options {
            plain_http: self.use_http,
            skip_tls_verify: self.skip_tls_verify,
            ca_file: self.ca_file.clone(),
            auth_file: self.authfile.clone(),
            registries_conf: self.registries_conf.clone(),
            cache: if self.no_cache { None } else { Cache::for_user() },
            chunk_size: self.chunk_size,
            attempts: 0,
            image_bytes: self.max_image_size,
            answer: self.registry_timeout.map(Duration::from_secs),
        };
        Ok(Client::new(options, progress())?)
    }
}

/// Bars on a terminal. Otherwise one line for each finished transfer, and one every ten seconds in between.
fn progress() -> Arc<dyn Progress> {
    if terminal::is_quiet() {
        Arc::new(NoProgress)
    } else if std::io::stderr().is_terminal() {
        Arc::new(Bars(MultiProgress::new()))
    } else {
        Arc::new(Lines)
    }
}

struct Bars(MultiProgress);

struct Bar(ProgressBar);

impl Progress for Bars {
    fn begin(&self, what: &str, size: u64) -> Box<dyn Transfer> {
        let bar = self.0.add(ProgressBar::new(size));
        if let Ok(style) =
            ProgressStyle::with_template("{msg:24} [{bar:30}] {bytes:>10} of {total_bytes:>10} {bytes_per_sec}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        Box::new(Bar(bar))
    }

    fn note(&self, text: &str) {
        // Without a terminal to draw on there would be nothing to keep intact.
        let _ = self.0.println(text);
    }
}

impl Transfer for Bar {
    fn position(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    fn finish(&self, how: &str) {
        let message = format!("{}: {how}", self.0.message());
        self.0.finish_with_message(message);
    }
}

struct Lines;

struct Line {
    what: String,
    size: u64,
    start: Instant,
    /// Number of printed lines.
    printed: AtomicU64,
}

impl Progress for Lines {
    fn begin(&self, what: &str, size: u64) -> Box<dyn Transfer> {
        Box::new(Line {
            what: what.to_owned(),
            size,
            start: Instant::now(),
            printed: AtomicU64::new(0),
        })
    }

    fn note(&self, text: &str) {
        note!("{text}");
    }
}

impl Transfer for Line {
    fn position(&self, bytes: u64) {
        let seconds = self.start.elapsed().as_secs();
        let due = seconds / crate::progress::LINE.as_secs();
        if self.printed.fetch_max(due, Ordering::Relaxed) < due {
            let (done, size, rate) = (
                HumanBytes(bytes),
                HumanBytes(self.size),
                HumanBytes(bytes / seconds.max(1)),
            );
            note!("{}: {done} of {size}, {rate}/s", self.what);
        }
    }

    fn finish(&self, how: &str) {
        note!("{} ({} bytes): {how}", self.what, self.size);
    }
}
