//! Answers the questions of `dev/graph` with olmkit's own code: one JSON question a line, one answer a line.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead as _, Write as _};

use olmkit::catalog::path::{self, End, Question};
use olmkit::catalog::selection::Selection;
use olmkit::catalog::{Catalog, ChannelEntry, index, load, mermaid};
use olmkit::object::Version;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Line {
    catalog: String,
    package: String,
    channel: String,
    no_channel: bool,
    from: String,
    /// The user's argument `from`, such as a version.
    text: String,
    to: Option<String>,
    bundles: Option<Vec<Bundle>>,
    mode: String,
    draw: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Bundle {
    name: String,
    version: String,
    channels: String,
    default_channel: String,
    replaces: String,
    skips: Vec<String>,
    skip_range: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut catalogs: HashMap<String, Catalog> = HashMap::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line: Line = serde_json::from_str(&line?)?;
        let answer = match &line.bundles {
            Some(bundles) => index(bundles, &line.mode),
            None => {
                if !catalogs.contains_key(&line.catalog) {
                    catalogs.clear();
                    let catalog = load::directory(line.catalog.as_ref())?;
                    catalogs.insert(line.catalog.clone(), catalog);
                }
                let catalog = catalogs.get(&line.catalog).ok_or("no catalog")?;
                if line.draw { draw(catalog) } else { path(catalog, &line) }
            }
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn path(catalog: &Catalog, line: &Line) -> Value {
    let default = catalog.packages.iter().find(|package| package.name == line.package);
    let default = default
        .map(|package| package.default_channel.as_str())
        .unwrap_or_default();
    let question = Question {
        package: &line.package,
        channel: match line.channel.as_str() {
            _ if line.no_channel => None,
            "" => Some(default),
            name => Some(name),
        },
        from: if line.text.is_empty() { &line.from } else { &line.text },
        to: line.to.as_deref(),
    };
    match path::find(catalog, question) {
        Ok(path) => {
            let chain: Vec<&str> = std::iter::once(line.from.as_str())
                .chain(path.steps.iter().map(|step| step.to.as_str()))
                .collect();
            let (end, error) = match &path.end {
                End::Newest | End::Target => ("settled", ""),
                End::Stays(reason) => ("settled", reason.as_str()),
                End::Past(reason) => ("past", reason.as_str()),
                End::Cycle(cycle) => ("cycle", cycle.as_str()),
                End::Rejected(reason) => ("refused", reason.as_str()),
            };
            json!({"chain": chain, "end": end, "error": error, "version": path.from.version.to_string()})
        }
        Err(error) => json!({"chain": [], "end": "error", "error": error.to_string()}),
    }
}

fn draw(catalog: &Catalog) -> Value {
    let v0_semantics = true;
    let selection = Selection {
        v0_semantics,
        ..Selection::default()
    };
    match mermaid::draw(catalog, &selection) {
        Ok(drawing) => json!({"text": drawing.text}),
        Err(error) => json!({"text": "", "error": error}),
    }
}

fn index(bundles: &[Bundle], mode: &str) -> Value {
    let member = |bundle: &Bundle| -> Option<index::Member> {
        Some(index::Member {
            version: Version::parse(&bundle.version).ok()?,
            channels: bundle.channels.split(',').map(str::to_owned).collect(),
            default_channel: Some(bundle.default_channel.clone()).filter(|name| !name.is_empty()),
            entry: ChannelEntry {
                name: bundle.name.clone(),
                replaces: bundle.replaces.clone(),
                skips: bundle.skips.clone(),
                skip_range: bundle.skip_range.clone(),
            },
        })
    };
    let members: Vec<index::Member> = bundles.iter().filter_map(member).collect();
    let members: Vec<&index::Member> = members.iter().collect();
    let (channels, default) = match mode {
        "semver" => (index::semver_mode(&members), index::semver_default_channel(&members)),
        _ => (index::replaces_mode(&members), index::default_channel(&members)),
    };
    let shown = |entry: &ChannelEntry| {
        let mut skips = entry.skips.clone();
        skips.sort();
        skips.dedup();
        json!({"name": entry.name, "replaces": entry.replaces, "skips": skips, "skipRange": entry.skip_range})
    };
    let channels: serde_json::Map<String, Value> = channels
        .into_iter()
        .map(|(name, mut entries)| {
            entries.sort_by(|left, right| left.name.cmp(&right.name));
            (name, entries.iter().map(shown).collect())
        })
        .collect();
    json!({"channels": channels, "defaultChannel": default.unwrap_or_default()})
}
