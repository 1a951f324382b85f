//! The `createdAt` timestamp of a bundle.

use std::path::Path;

use super::{Error, Generated, Options};
use olmkit_base::git::Repository;
use olmkit_base::limits;
use olmkit_base::process::Launcher;

/// `SOURCE_DATE_EPOCH` when it is set, else the time of the last commit, else the clock; RFC 3339 in UTC. A build from the
/// same sources gives the same time in the first two cases.
///
/// # Errors
/// When `SOURCE_DATE_EPOCH` is not a time.
pub fn now() -> Result<String, Error> {
    let time = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => {
            let seconds: i64 = text
                .trim()
                .parse()
                .map_err(|source| Error::SourceDateEpoch { text, source })?;
            jiff::Timestamp::from_second(seconds).map_err(Error::SourceDateEpochRange)?
        }
        Err(_) => commit_time().unwrap_or_else(jiff::Timestamp::now),
    };
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Makes a bundle with `make` for a directory that may contain an earlier one: keeps the earlier time if nothing else
/// changes, and uses [`now`] otherwise.
///
/// # Errors
/// Those of `make` and of [`now`].
pub fn keep<E: From<Error>>(
    directory: &Path,
    mut options: Options,
    mut make: impl FnMut(&Options) -> Result<Generated, E>,
) -> Result<Generated, E> {
    let now = now()?;
    if let Some(present) = present(directory, &options.package) {
        options.created_at = present;
        let generated = make(&options)?;
        if is_on_disk(&generated, directory)? {
            return Ok(generated);
        }
    }
    options.created_at = now;
    make(&options)
}

fn present(directory: &Path, package: &str) -> Option<String> {
    let name = format!("{}.clusterserviceversion.yaml", package.to_lowercase());
    let bytes = limits::read_file(&directory.join("manifests").join(name), &limits::BUNDLE_BYTES).ok()?;
    let csv = olmkit_yaml::parse(&bytes).ok()?;
    csv.pointer("/metadata/annotations")?
        .get("createdAt")?
        .as_str()
        .map(str::to_owned)
}

fn is_on_disk(generated: &Generated, directory: &Path) -> Result<bool, Error> {
    Ok(generated
        .files()?
        .iter()
        .all(|(path, bytes)| olmkit_base::files::holds(&directory.join(path), bytes)))
}

fn commit_time() -> Option<jiff::Timestamp> {
    let repository = Repository::new(Path::new("."), Launcher::default());
    let log = ["log", "-1", "--no-show-signature", "--no-ext-diff", "--format=%ct"];
    let output = repository.read(&log, &limits::PROGRAM_OUTPUT).ok()?;
    let seconds: i64 = String::from_utf8(output).ok()?.trim().parse().ok()?;
    jiff::Timestamp::from_second(seconds).ok()
}
