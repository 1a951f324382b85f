//! Flags that choose findings, and `olmkit.toml`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::diagnostics::{Report, Rule, Severity, Suppressed, counted};
use olmkit::object::UntrustedText;
use olmkit::policy::baseline::Baseline;
use olmkit::policy::config::{self, Config};
use olmkit::policy::{Builder, Policy};

use crate::bundle::output::FailOn;
use crate::terminal;

// Flags that select findings. No doc comment: the commands that flatten this would show it as their own help.
#[derive(clap::Args)]
#[command(next_help_heading = "Selection of findings")]
pub struct PolicyFlags {
    /// Report only these rules: IDs such as CSV-17, families such as CSV, or all
    #[arg(long, value_name = "RULES", value_delimiter = ',', env = "OLMKIT_SELECT")]
    select: Vec<String>,
    /// Ignore these rules
    #[arg(long, value_name = "RULES", value_delimiter = ',', env = "OLMKIT_IGNORE")]
    ignore: Vec<String>,
    /// Give rules another severity, such as RBAC=error
    #[arg(long, value_name = "RULE=SEVERITY", value_delimiter = ',', env = "OLMKIT_SEVERITY")]
    severity: Vec<String>,
    /// Ignore findings recorded in this baseline file
    #[arg(long, value_name = "FILE", env = "OLMKIT_BASELINE")]
    baseline: Option<PathBuf>,
    /// Record all findings in this baseline file and exit with 0
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Disregard `# olmkit: ignore` comments
    #[arg(long)]
    no_ignore_comments: bool,
    #[command(flatten)]
    settings: SettingsFlags,
}

// Source of settings.
#[derive(clap::Args)]
pub struct SettingsFlags {
    /// Configuration file [default: olmkit.toml in the working directory or above]
    #[arg(long, value_name = "FILE", env = "OLMKIT_CONFIG", conflicts_with = "isolated")]
    config: Option<PathBuf>,
    /// Do not read olmkit.toml
    #[arg(long)]
    isolated: bool,
}

/// The rules of all commands, because they share one settings file.
pub fn rules() -> Vec<&'static Rule> {
    olmkit::rules::all()
        .iter()
        .copied()
        .chain(olmkit_submission::rules())
        .collect()
}

/// The combined settings from flags, environment and file.
pub struct Chosen {
    pub policy: Policy,
    /// True if warnings fail the command.
    pub warnings_fail: bool,
    write_baseline: Option<PathBuf>,
}

impl SettingsFlags {
    /// The file and its content.
    pub fn read(&self) -> anyhow::Result<Option<(PathBuf, Config)>> {
        let path = match &self.config {
            Some(path) => Some(path.clone()),
            None if self.isolated => None,
            None => config::find(&std::env::current_dir().context("cannot find the working directory")?)?,
        };
        path.map(|path| Config::read(&path).map(|config| (path, config)))
            .transpose()
            .map_err(Into::into)
    }
}

impl PolicyFlags {
    /// Reads the settings, and overrides them with flags and environment. A failure has the exit code of a usage error.
    pub fn choose(&self, fail_on: Option<FailOn>) -> Result<Chosen, ExitCode> {
        self.try_choose(&rules(), fail_on).map_err(|error| {
            eprintln!("error: {}", UntrustedText::lines(&format!("{error:#}")));
            ExitCode::from(2)
        })
    }

    fn try_choose(&self, rules: &[&'static Rule], fail_on: Option<FailOn>) -> anyhow::Result<Chosen> {
        let settings = self.settings.read()?;
        let mut builder = Policy::builder(rules)
            .comments(!self.no_ignore_comments)
            .notes(!terminal::is_quiet())
            .root(Path::new("."));
        if let Some((path, config)) = &settings {
            builder = config.apply(path, builder, self.select.is_empty())?;
        }
        builder = self.flags(builder)?;
        let of_settings = settings.as_ref().and_then(|(path, config)| config.baseline_file(path));
        // A baseline that will be written may not exist yet.
        let baseline = self
            .baseline
            .clone()
            .or(of_settings)
            .filter(|path| self.write_baseline.as_ref() != Some(path) || path.exists());
        if let Some(path) = &baseline {
            builder = builder.baseline(Baseline::read(path)?);
        }
        let configured = settings.as_ref().and_then(|(_, config)| config.fail_on);
        let warnings_fail = match fail_on {
            Some(fail_on) => fail_on == FailOn::Warning,
            None => configured == Some(config::FailOn::Warning),
        };
        Ok(Chosen {
            policy: builder.build(),
            warnings_fail,
            write_baseline: self.write_baseline.clone(),
        })
    }

    fn flags<'r>(&self, mut builder: Builder<'r>) -> anyhow::Result<Builder<'r>> {
        for pattern in &self.select {
            builder = builder.select(pattern).context("--select")?;
        }
        for pattern in &self.ignore {
            builder = builder.ignore(pattern).context("--ignore")?;
        }
        for pair in &self.severity {
            let (pattern, severity) = pair
                .split_once('=')
                .with_context(|| format!("--severity {pair}: use RULE=SEVERITY, such as RBAC=error"))?;
            builder = builder.severity(pattern, severity).context("--severity")?;
        }
        Ok(builder)
    }
}

impl Chosen {
    /// Returns true if a baseline is to be written.
    pub fn writes_baseline(&self) -> bool {
        self.write_baseline.is_some()
    }

    /// Writes the baseline, if requested.
    pub fn write_baseline(&self, reports: &[&Report]) -> anyhow::Result<()> {
        let Some(path) = &self.write_baseline else {
            return Ok(());
        };
        let baseline = self.policy.new_baseline(reports.iter().copied());
        let text = baseline.text()?;
        olmkit::files::write(path, text.as_bytes())?;
        note!("{}: {} known", path.display(), counted(baseline.len(), "finding"));
        Ok(())
    }

    /// The lowest severity that fails the command.
    pub fn fails_from(&self, strict: bool) -> Severity {
        if strict || self.warnings_fail {
            Severity::Warning
        } else {
            Severity::Error
        }
    }
}

/// Number of suppressed findings, by reason.
#[derive(Debug, Clone, Copy, Default)]
pub struct SetAside {
    ignored: usize,
    in_baseline: usize,
}

impl SetAside {
    /// Counts these too.
    pub fn add(&mut self, suppressed: &[Suppressed]) {
        let in_baseline = suppressed.iter().filter(|one| one.by.is_baseline()).count();
        self.in_baseline += in_baseline;
        self.ignored += suppressed.len() - in_baseline;
    }

    /// `3 findings ignored, 1 finding in the baseline`. Nothing if there are none.
    pub fn summary(self) -> Option<String> {
        let parts: Vec<String> = [(self.ignored, "ignored"), (self.in_baseline, "in the baseline")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}", counted(count, "finding")))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Reports the number of suppressed findings and their sources.
pub fn summary_of_suppressed(report: &Report) -> Option<String> {
    let mut set_aside = SetAside::default();
    set_aside.add(&report.suppressed);
    set_aside.summary()
}
