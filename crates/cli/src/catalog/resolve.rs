//! `olmkit catalog resolve`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::catalog::render::reference::{Options, render_one};
use olmkit::object::UntrustedText;
use olmkit::olmv1::{self, Candidate, Installed, Outcome, Policy, Request, Resolution, Source, VersionRange};
use serde::Serialize;

use super::images::RegistryImages;
use crate::registry_flags::RegistryFlags;
use crate::terminal;

#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit catalog resolve --olmv1 cache-operator catalog",
    "olmkit catalog resolve --olmv1 cache-operator catalog --installed 0.1.0 --version '>=0.2, <1'",
    "olmkit catalog resolve --olmv1 cache-operator catalog ours --priority ours=10"
])]
pub struct Args {
    /// Package.
    package: String,
    /// Catalogs on the cluster: directories or images.
    #[arg(required = true, value_name = "CATALOG")]
    catalogs: Vec<String>,
    /// Choose as OLM v1 does.
    #[arg(long, required = true)]
    olmv1: bool,
    /// Installed bundle: NAME, VERSION, or NAME@VERSION if no catalog has it.
    #[arg(long, value_name = "BUNDLE")]
    installed: Option<String>,
    /// Version or range, such as 1.2.3, '>=1.2, <2' or ~1.4 [default: any].
    #[arg(long, value_name = "RANGE")]
    version: Option<String>,
    /// Channels to choose from [default: all].
    #[arg(long, value_delimiter = ',', value_name = "CHANNEL")]
    channels: Vec<String>,
    /// Upgrade constraint policy of the ClusterExtension.
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyName,
    /// Priority of a catalog, as in the ClusterCatalog [default: 0].
    #[arg(long = "priority", value_name = "CATALOG=NUMBER", value_parser = priority)]
    priorities: Vec<(String, i32)>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum PolicyName {
    /// Only upgrades for which a catalog has an edge.
    #[default]
    #[value(name = "CatalogProvided")]
    CatalogProvided,
    /// Any version, older ones too.
    #[value(name = "SelfCertified")]
    SelfCertified,
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

fn priority(text: &str) -> Result<(String, i32), String> {
    let (name, number) = text.rsplit_once('=').ok_or("write CATALOG=NUMBER")?;
    let number = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    Ok((name.to_owned(), number))
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let version = args.version.as_deref().map(range).transpose()?;
    if let Some((name, _)) = args.priorities.iter().find(|(name, _)| !args.catalogs.contains(name)) {
        anyhow::bail!(
            "--priority names {name:?}, which is not one of the catalogs: {}",
            args.catalogs.join(", ")
        );
    }
    let images = RegistryImages::new(&args.registry);
    let source = |name: &String| -> anyhow::Result<Source> {
        let given = args.priorities.iter().rfind(|(catalog, _)| catalog == name);
        Ok(Source {
            name: name.clone(),
            priority: given.map_or(0, |(_, number)| *number),
            catalog: render_one(name, &Options::default(), &images)?,
        })
    };
    let sources: Vec<Source> = args.catalogs.iter().map(source).collect::<anyhow::Result<_>>()?;
    let installed = args.installed.as_deref();
    let request = Request {
        package: args.package.clone(),
        version,
        channels: args.channels.clone(),
        installed: installed
            .map(|text| Installed::find(text, &args.package, &sources))
            .transpose()?,
        policy: match args.policy {
            PolicyName::CatalogProvided => Policy::CatalogProvided,
            PolicyName::SelfCertified => Policy::SelfCertified,
        },
    };
    let resolution = olmv1::resolve(&request, &sources);
    match args.output {
        Output::Json => {
            let answer = Answer {
                package: &args.package,
                chosen: resolution.chosen(),
                rejection: resolution.refusal.as_ref().map(ToString::to_string),
                deprecations: &resolution.deprecations,
                candidates: &resolution.candidates,
            };
            terminal::json(&answer)?;
        }
        Output::Text => print(&resolution, args.catalogs.len() > 1)?,
    }
    for name in &resolution.without_package {
        note!(
            "note: {} has no package {}",
            UntrustedText::new(name),
            UntrustedText::new(&args.package)
        );
    }
    if request.installed.as_ref().is_some_and(|one| one.name().is_empty()) {
        note!(
            "note: no catalog has the installed version, so its name is unknown and only a skipRange can upgrade it; write NAME@VERSION if you know the name"
        );
    }
    let Some(refusal) = resolution.refusal else {
        return Ok(ExitCode::SUCCESS);
    };
    eprintln!("OLM v1 installs nothing: {}", UntrustedText::new(&refusal.to_string()));
    Ok(ExitCode::FAILURE)
}

fn range(text: &str) -> anyhow::Result<VersionRange> {
    let range = VersionRange::parse(text).with_context(|| {
        format!("invalid --version {text:?}; write a version or a range, such as 1.2.3, '>=1.2, <2', ~1.4 or 1.x")
    })?;
    if !range.is_admitted() {
        note!(
            "note: the API server rejects {:?} in a ClusterExtension, although OLM v1 could parse it; write a range of at most 64 \
             characters with operators, such as '>=1.2, <2'",
            UntrustedText::new(text).to_string()
        );
    }
    Ok(range)
}

#[derive(Serialize)]
struct Answer<'r> {
    package: &'r str,
    chosen: Option<&'r Candidate>,
    rejection: Option<String>,
    deprecations: &'r [String],
    candidates: &'r [Candidate],
}

/// Prints the choice, and the reasons against the other bundles.
pub fn print(resolution: &Resolution, several: bool) -> anyhow::Result<()> {
    let mut out = terminal::output();
    let mut candidates: Vec<&Candidate> = resolution.candidates.iter().collect();
    candidates.sort_by_key(|candidate| candidate.outcome);
    for candidate in candidates {
        let mut line = match candidate.outcome {
            Outcome::Chosen => candidate.bundle.clone(),
            _ => format!("    not {}", candidate.bundle),
        };
        if let Some(version) = &candidate.version {
            line.push_str(&format!(" ({version})"));
        }
        if several {
            line.push_str(&format!(" from {}", candidate.catalog));
        }
        if !candidate.reasons.is_empty() {
            line.push_str(&format!(": {}", candidate.reasons.join("; ")));
        }
        writeln!(out, "{}", UntrustedText::new(&line))?;
        if candidate.outcome == Outcome::Chosen {
            for deprecation in &resolution.deprecations {
                writeln!(out, "    {}", UntrustedText::new(deprecation))?;
            }
        }
    }
    Ok(())
}
