//! Runs kustomize.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context as _, bail};
use olmkit::limits;
use olmkit::process::{Environment, Launcher, Run};

/// The output of `kustomize build`, or of `kubectl kustomize` where kustomize is not installed.
pub fn kustomize(launcher: &Launcher, directory: &Path) -> anyhow::Result<Vec<u8>> {
    for (program, command) in [("kustomize", "build"), ("kubectl", "kustomize")] {
        // Kustomize fetches remote bases with git, and so with the user's credentials.
        let run = Run {
            prompts: true,
            shows_errors: true,
            output: &limits::GENERATE_INPUT,
            ..Run::new(OsStr::new(program), Environment::Except(&[]))
                .arguments([command.as_ref(), directory.as_os_str()])
        };
        match launcher.run(run) {
            Ok(ended) if ended.status.success() => return Ok(ended.output),
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
