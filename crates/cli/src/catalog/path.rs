//! `olmkit catalog path`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::catalog::path::{self, End, Path, Question, Step, VersionSource};
use olmkit::catalog::render::reference::{Options, render_one};
use olmkit::limits;
use olmkit::object::UntrustedText;
use serde::Serialize;

use super::images::RegistryImages;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog path catalog --from 0.1.0", "olmkit catalog path catalog --package cache-operator --channel stable --from 0.1.0 --to 0.3.0"])]
pub struct Args {
    /// Catalog directory or image.
    catalog: String,
    /// Package [default: the only one in the catalog].
    #[arg(short, long)]
    package: Option<String>,
    /// Channel of the Subscription [default: the default channel of the package].
    #[arg(short, long)]
    channel: Option<String>,
    /// Search all channels, as OLM does for a Subscription without a channel.
    #[arg(long, conflicts_with = "channel")]
    all_channels: bool,
    /// Installed bundle: NAME, VERSION, or NAME@VERSION if no catalog has it.
    #[arg(long, value_name = "BUNDLE")]
    from: String,
    /// Target bundle: its name or version [default: the newest that OLM installs].
    #[arg(long, value_name = "BUNDLE")]
    to: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// `--output text|json`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Output {
    /// Human-readable.
    #[default]
    Text,
    /// JSON, for scripts.
    Json,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let catalog = render_one(&args.catalog, &Options::default(), &RegistryImages::new(&args.registry))?;
    let package = match (&args.package, catalog.packages.as_slice()) {
        (Some(name), packages) => packages.iter().find(|package| package.name == *name),
        (None, [only]) => Some(only),
        (None, _) => anyhow::bail!(
            "the catalog has {} packages; select one with --package",
            catalog.packages.len()
        ),
    };
    let package = package.with_context(|| {
        format!(
            "the catalog has no package {}",
            args.package.as_deref().unwrap_or_default()
        )
    })?;
    let channel = match &args.channel {
        _ if args.all_channels => None,
        Some(name) => Some(name.as_str()),
        None if package.default_channel.is_empty() => anyhow::bail!(
            "package {} has no default channel; name one with --channel, or pass --all-channels",
            limits::name(&package.name)
        ),
        None => Some(package.default_channel.as_str()),
    };
    let question = Question {
        package: &package.name,
        channel,
        from: &args.from,
        to: args.to.as_deref(),
    };
    let mut path = path::find(&catalog, question)?;
    let is_default = channel == Some(package.default_channel.as_str());
    if is_default && args.channel.is_none() && args.to.is_none() {
        let channel = None;
        let all = path::find(&catalog, Question { channel, ..question });
        if let Some(last) = all
            .ok()
            .map(|all| limits::name(all.last()))
            .filter(|last| *last != limits::name(path.last()))
        {
            path.notes.push(format!(
                "a Subscription without a channel searches all channels, and leads to {last}; see --all-channels"
            ));
        }
    }
    match args.output {
        Output::Json => terminal::json(&Answer::new(&path))?,
        Output::Text => print(&path, is_default)?,
    }
    for text in &path.notes {
        note!("note: {}", UntrustedText::new(text));
    }
    let (at, place) = (
        limits::name(path.last()),
        limits::name(path.channel.as_deref().unwrap_or("all channels")),
    );
    match &path.end {
        End::Newest | End::Target => Ok(ExitCode::SUCCESS),
        End::Stays(reason) => anyhow::bail!("no upgrade path from {at} to the newest bundle of {place}: {reason}"),
        End::Cycle(cycle) => anyhow::bail!("OLM upgrades in a cycle and never stops: {cycle}"),
        End::Past(reason) | End::Rejected(reason) => anyhow::bail!("{reason}"),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'p> {
    package: &'p str,
    /// Null: all channels.
    channel: Option<&'p str>,
    from: &'p str,
    version: String,
    version_source: VersionSource,
    steps: &'p [Step],
    end: &'p End,
    notes: &'p [String],
}

impl<'p> Answer<'p> {
    fn new(path: &'p Path) -> Self {
        Answer {
            package: &path.package,
            channel: path.channel.as_deref(),
            from: &path.from.name,
            version: path.from.version.to_string(),
            version_source: path.from.source,
            steps: &path.steps,
            end: &path.end,
            notes: &path.notes,
        }
    }
}

/// Prints the question that is answered, and the upgrades.
fn print(path: &Path, is_default: bool) -> anyhow::Result<()> {
    let mut out = terminal::output();
    let package = limits::name(&path.package);
    let question = match path.channel.as_ref().map(limits::name) {
        None => format!("Subscription to {package} without a channel:"),
        Some(name) if is_default => format!("Subscription to {package}, channel {name} (default):"),
        Some(name) => format!("Subscription to {package}, channel {name}:"),
    };
    writeln!(out, "{}", UntrustedText::new(&question))?;
    for step in &path.steps {
        let channel = match path.channel {
            None => format!(" in {}", step.channel),
            Some(_) => String::new(),
        };
        let text = format!("{} -> {} ({}{channel})", step.from, step.to, step.by.as_str());
        writeln!(out, "{}", UntrustedText::new(&text))?;
        for other in &step.passed_over {
            writeln!(out, "    not {}", UntrustedText::new(other))?;
        }
    }
    if path.steps.is_empty() && matches!(path.end, End::Newest | End::Target) {
        let text = format!("already at {}; nothing to upgrade", path.last());
        writeln!(out, "{}", UntrustedText::new(&text))?;
    }
    Ok(())
}
