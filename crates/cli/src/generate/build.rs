//! Runs kustomize.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// The output of `kustomize build`, or of `kubectl kustomize` where kustomize is not installed.
pub fn kustomize(directory: &Path) -> anyhow::Result<Vec<u8>> {
    for (program, command) in [("kustomize", "build"), ("kubectl", "kustomize")] {
        let run = Command::new(program)
            .arg(command)
            .arg(directory)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output();
        match run {
            Ok(output) if output.status.success() => return Ok(output.stdout),
            Ok(output) => bail!(
                "`{program} {command} {}` failed ({})",
                directory.display(),
                output.status
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot run {program}")),
        }
    }
    bail!(
        "neither kustomize nor kubectl is installed. Install one of them, or build the manifests elsewhere and pipe them \
         in: kustomize build {} | olmkit generate bundle",
        directory.display()
    )
}
