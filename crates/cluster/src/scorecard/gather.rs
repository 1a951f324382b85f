//! Copies the files of a test from its pod to this machine.

use std::path::{Path, PathBuf};

use kube::api::AttachParams;
use olmkit::files;
use olmkit::object::PathPart;
use tokio::io::AsyncReadExt as _;

use super::objects::GATHER;
use crate::kube::client::Cluster;

/// Limits for the files of one test.
const LIMITS: olmkit_oci::unpack::Limits = olmkit_oci::unpack::Limits::REPORTS;

/// The directory of a test's files. Labels come from the bundle and cannot name a path outside the output directory.
pub fn goal(output: &Path, labels: [&str; 2]) -> Result<PathBuf, String> {
    let mut goal = output.to_owned();
    for label in labels {
        goal.push(PathPart::new(label).map_err(|error| error.to_string())?);
    }
    Ok(goal)
}

/// Copies the files below a directory of a pod.
pub async fn files(cluster: &Cluster, pod: &str, directory: &str, goal: &Path) -> Result<(), String> {
    let command = ["tar", "cf", "-", "-C", directory, "."];
    let params = AttachParams::default().container(GATHER).stdout(true).stderr(false);
    let mut attached = cluster
        .pods(&cluster.namespace)
        .exec(pod, command, &params)
        .await
        .map_err(|error| error.to_string())?;
    let stream = attached.stdout().ok_or("the API server returns no output")?;
    let mut archive = Vec::new();
    let most = LIMITS.written_bytes * 2;
    stream
        .take(most)
        .read_to_end(&mut archive)
        .await
        .map_err(|error| error.to_string())?;
    attached.abort();
    let found = olmkit_oci::unpack::files(&mut archive.as_slice(), &LIMITS).map_err(|error| error.to_string())?;
    for (path, bytes) in found {
        files::write(&goal.join(path), &bytes).map_err(|error| error.to_string())?;
    }
    Ok(())
}
