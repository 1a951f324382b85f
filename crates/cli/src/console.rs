//! Shows a flow's progress on stderr: with a spinner on a terminal, as plain lines elsewhere.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use olmkit::object::UntrustedText;
use olmkit_cluster::{Cause, Error, ProgressReporter};

use super::cluster_args::Output;
use crate::terminal;

/// Prints to stderr.
pub struct Console {
    spinner: Option<ProgressBar>,
}

impl Console {
    /// A spinner when stderr is a terminal. Nothing with `--quiet`.
    pub fn new() -> Self {
        let spinner = (std::io::stderr().is_terminal() && !terminal::is_quiet()).then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        Console { spinner }
    }

    /// Ends the spinner.
    pub fn finish(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

impl ProgressReporter for Console {
    fn done(&self, after: Duration, text: &str) {
        let line = format!("[{:>6.1}s] {text}", after.as_secs_f64());
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| note!("{line}")),
            None => note!("{line}"),
        }
    }

    fn waiting(&self, after: Duration, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(format!("waiting for {}", UntrustedText::new(text))),
            None => note!("[{:>6.1}s] waiting for {text}", after.as_secs_f64()),
        }
    }
}

/// Prints causes to stderr, errors first.
pub fn print_causes(causes: &[Cause]) {
    for cause in causes {
        eprintln!("{cause}");
    }
}

/// Ends an operation that a failed request stopped: with the cause if the error concerns the cluster, as JSON if
/// requested. Otherwise with the error itself.
///
/// # Errors
/// The error itself, without its causes.
pub fn stopped(error: Error, output: Output) -> anyhow::Result<ExitCode> {
    let Some(cause) = error.cause() else {
        return Err(error.into());
    };
    match output {
        Output::Json => {
            let result = serde_json::json!({"result": "failed", "causes": [cause]});
            crate::terminal::json(&result)?;
        }
        Output::Text => print_causes(&[cause]),
    }
    Ok(ExitCode::FAILURE)
}
