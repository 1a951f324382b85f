//! Channels in Mermaid format, as `opm alpha render-graph` draws them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::model::{BUNDLE, CHANNEL, Catalog, Channel, ChannelEntry, PACKAGE};
use super::selection::{self, Selection};
use olmkit_base::limits;
use olmkit_base::object::{UntrustedText, Version, VersionRange};
use olmkit_go::strconv::quote;

/// A drawing, and what could not be drawn.
#[derive(Debug, Default)]
pub struct Drawing {
    /// The Mermaid source.
    pub text: String,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// Draws the channels of a catalog.
///
/// # Errors
/// A bundle's version cannot be read; the minimum edge is unknown; the text is larger than [`limits::GRAPH_TEXT`].
pub fn draw(catalog: &Catalog, selection: &Selection) -> Result<Drawing, String> {
    let versions = selection::versions(catalog)?;
    let mut channels = selection.channels(catalog, &versions)?;
    channels.sort_by(|left, right| left.name.cmp(&right.name));
    let mut painter = Painter::new(catalog, versions, selection.v0_semantics);
    for channel in &channels {
        painter.channel(channel)?;
    }
    Ok(painter.finish())
}

/// A name as part of an identifier. Characters that could end it and begin another statement, such as `click`, are
/// spelled out. Names that Kubernetes allows are not changed.
fn identifier(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-._+~:/@".contains(c);
    if name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "_{:x}_", u32::from(c));
        }
    }
    Cow::Owned(out)
}

/// A name in quotes. Mermaid has no escapes with backslashes, and may show a label as HTML.
fn label(name: &str) -> String {
    let text = plain(name).replace('<', "#lt;").replace('>', "#gt;");
    format!("\"{text}\"")
}

/// Text for within quotes.
fn plain(text: &str) -> String {
    UntrustedText::new(text).to_string().replace('"', "#quot;")
}

/// The entries of a channel by version.
struct Ascending {
    versions: Vec<Version>,
    /// The numbers of the entries of each version.
    numbers: Vec<Vec<usize>>,
}

impl Ascending {
    fn from_entries(entries: &[ChannelEntry], version: impl Fn(&str) -> Version) -> Self {
        let mut numbers: BTreeMap<Version, Vec<usize>> = BTreeMap::new();
        for (number, entry) in entries.iter().enumerate() {
            numbers.entry(version(&entry.name)).or_default().push(number);
        }
        let (versions, numbers) = numbers.into_iter().unzip();
        Ascending { versions, numbers }
    }

    /// The numbers of the entries in a range, in the order of the channel.
    fn within(&self, range: &VersionRange) -> Vec<usize> {
        let stretches = range.within(&self.versions).into_iter();
        let found = stretches.filter_map(|stretch| self.numbers.get(stretch)).flatten();
        let mut found: Vec<usize> = found.flatten().copied().collect();
        found.sort_unstable();
        found
    }
}

struct Painter<'c> {
    versions: BTreeMap<&'c str, Version>,
    deprecated: BTreeSet<(&'c str, &'c str)>,
    v0_semantics: bool,
    packages: BTreeMap<String, String>,
    deprecated_package: Option<String>,
    deprecated_channels: Vec<String>,
    classes: BTreeMap<&'static str, BTreeSet<String>>,
    links: usize,
    ignored: Vec<String>,
    warnings: Vec<String>,
    /// Bytes drawn so far.
    bytes: usize,
}

impl<'c> Painter<'c> {
    fn new(catalog: &'c Catalog, versions: BTreeMap<&'c str, Version>, v0_semantics: bool) -> Self {
        let entries = catalog
            .deprecations
            .iter()
            .flat_map(|blob| blob.entries.iter().flatten().map(move |entry| (blob, entry)));
        let deprecated = entries
            .map(|(blob, entry)| {
                let name = if entry.schema == PACKAGE {
                    &blob.package
                } else {
                    &entry.name
                };
                (entry.schema.as_str(), name.as_str())
            })
            .collect();
        Painter {
            versions,
            deprecated,
            v0_semantics,
            packages: BTreeMap::new(),
            deprecated_package: None,
            deprecated_channels: Vec::new(),
            classes: BTreeMap::new(),
            links: 0,
            ignored: Vec::new(),
            warnings: Vec::new(),
            bytes: 0,
        }
    }

    fn version(&self, name: &str) -> Version {
        self.versions.get(name).cloned().unwrap_or_default()
    }

    fn channel(&mut self, channel: &Channel) -> Result<(), String> {
        if self.deprecated.contains(&(PACKAGE, channel.package.as_str())) {
            self.deprecated_package = Some(channel.package.clone());
        }
        let id = format!("{}-{}", identifier(&channel.package), identifier(&channel.name));
        if self.deprecated.contains(&(CHANNEL, channel.name.as_str())) {
            self.deprecated_channels.push(id.clone());
        }
        let package = label(&channel.package);
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "    %% channel {name}\n    subgraph {id}[{name}]\n",
            name = label(&channel.name)
        );
        let mut entries: Vec<&ChannelEntry> = channel.entries().iter().collect();
        olmkit_go::sort::slice(&mut entries, |left, right| {
            self.version(&left.name) > self.version(&right.name)
        });
        // opm marks entries as skipped in the order from the highest version down. OLM does not.
        let mut skipped = BTreeSet::new();
        let ascending = Ascending::from_entries(channel.entries(), |name| self.version(name));
        for entry in entries {
            self.entry(&mut text, channel, &id, entry, &mut skipped, &ascending)?;
        }
        text.push_str("    end\n");
        self.bytes += text.len();
        self.packages
            .entry(channel.package.clone())
            .or_insert_with(|| format!("  %% package {package}\n  subgraph {package}\n"))
            .push_str(&text);
        Ok(())
    }

    fn entry<'e>(
        &mut self,
        text: &mut String,
        channel: &'e Channel,
        id: &str,
        entry: &'e ChannelEntry,
        skipped: &mut BTreeSet<&'e str>,
        ascending: &Ascending,
    ) -> Result<(), String> {
        let node = |name: &str| format!("{id}-{}[{}]", identifier(name), label(name));
        let own = node(&entry.name);
        let _ = writeln!(text, "      {own}");
        let class = match (
            self.deprecated.contains(&(BUNDLE, entry.name.as_str())),
            self.v0_semantics && skipped.contains(entry.name.as_str()),
        ) {
            (true, true) => Some("deprecatedskipped"),
            (true, false) => Some("deprecated"),
            (false, true) => Some("skipped"),
            (false, false) => None,
        };
        if let Some(class) = class {
            self.classes
                .entry(class)
                .or_default()
                .insert(format!("{id}-{}", identifier(&entry.name)));
        }
        let mut edges: Vec<(&'e str, String)> = entry
            .skips
            .iter()
            .map(|skip| (skip.as_str(), "skip".to_owned()))
            .collect();
        if !entry.skip_range.is_empty() {
            match VersionRange::parse(&entry.skip_range) {
                Ok(range) => {
                    let label = format!("\"skipRange({})\"", plain(&entry.skip_range));
                    let inside = ascending.within(&range);
                    // Before they are written, because their number is quadratic in the input size.
                    self.check(inside.len().saturating_mul(label.len() + id.len() + entry.name.len()) + text.len())?;
                    let inside = inside.into_iter().filter_map(|number| channel.entries().get(number));
                    edges.extend(inside.map(|other| (other.name.as_str(), label.clone())));
                }
                Err(error) => self.warnings.push(format!(
                    "warning: ignoring invalid SkipRange for package/edge {}/{}: {error}",
                    quote(&channel.package),
                    quote(&entry.name)
                )),
            }
        }
        if !entry.replaces.is_empty() {
            edges.push((&entry.replaces, "replace".to_owned()));
        }
        for (from, label) in edges {
            let _ = writeln!(text, "      {}-- {label} --> {own}", node(from));
            let ignored = self.v0_semantics
                && match label.as_str() {
                    "skip" => !skipped.insert(from),
                    _ => skipped.contains(entry.name.as_str()),
                };
            if ignored {
                self.ignored.push(self.links.to_string());
            }
            self.links += 1;
            self.check(text.len())?;
        }
        self.check(text.len())
    }

    /// Returns true if so much more may be drawn.
    fn check(&self, bytes: usize) -> Result<(), String> {
        if self.bytes.saturating_add(bytes) > limits::GRAPH_TEXT.count() {
            return Err(selection::too_large());
        }
        Ok(())
    }

    fn finish(self) -> Drawing {
        let mut text = String::from(
            "graph LR\n  classDef deprecated fill:#E8960F\n  classDef skipped stroke:#FF0000,stroke-width:4px\n  \
             classDef deprecatedskipped fill:#E8960F,stroke:#FF0000,stroke-width:4px\n",
        );
        for package in self.packages.values() {
            text.push_str(package);
            text.push_str("  end\n");
        }
        if let Some(package) = self.deprecated_package {
            let _ = writeln!(text, "style {} fill:#989695", identifier(&package));
        }
        for channel in self.deprecated_channels {
            let _ = writeln!(text, "style {channel} fill:#DCD0FF");
        }
        for (class, nodes) in self.classes {
            let nodes: Vec<String> = nodes.into_iter().collect();
            let _ = writeln!(text, "class {} {class}", nodes.join(","));
        }
        if !self.ignored.is_empty() {
            let links = self.ignored.join(",");
            let _ = writeln!(
                text,
                "linkStyle {links} stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;"
            );
        }
        Drawing {
            text,
            warnings: self.warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Selection, draw};
    use crate::{Catalog, load};

    fn marks(entries: &str) -> String {
        let mut text = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}".to_owned();
        text.push_str(&format!(
            "{{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":{entries}}}"
        ));
        for number in 1..=4 {
            text.push_str(&format!(
                "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"v{number}\",\"image\":\"r.io/p:v{number}\",\
                 \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"{number}.0.0\"}}}}]}}"
            ));
        }
        let catalog: Catalog = load::text(&text).unwrap().into_iter().collect();
        let v0_semantics = true;
        let drawing = draw(
            &catalog,
            &Selection {
                v0_semantics,
                ..Selection::default()
            },
        )
        .unwrap();
        let last = drawing
            .text
            .lines()
            .filter(|line| line.starts_with("linkStyle") || line.starts_with("class "));
        last.map(|line| line.split(" stroke").next().unwrap())
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn links_are_marked_as_opm_marks_them() {
        // Recorded from `opm alpha render-graph --draw-v0-semantics` 1.73. The links are numbered in the order of the text.
        assert_eq!(
            marks(
                r#"[{"name":"v1"},{"name":"v2","replaces":"v1"},{"name":"v3","replaces":"v1","skips":["v2"]},
                {"name":"v4","replaces":"v3","skips":["v2"],"skipRange":"<4.0.0"}]"#
            ),
            "class p-c-v2 skipped; linkStyle 5,7"
        );
        // A skip of a higher version is seen too late to mark that entry.
        assert_eq!(
            marks(r#"[{"name":"v1","skips":["v3"]},{"name":"v2","replaces":"v1"},{"name":"v3","replaces":"v2"}]"#),
            ""
        );
        assert_eq!(
            marks(
                r#"[{"name":"v1"},{"name":"v2","replaces":"v1","skipRange":"<2.0.0"},{"name":"v3","skips":["v2","v1"],"replaces":"v2"}]"#
            ),
            "class p-c-v1,p-c-v2 skipped; linkStyle 3,4"
        );
    }

    #[test]
    fn names_begin_no_statement_and_end_no_label() {
        let hostile = "x\"]\n  click x \"javascript:alert(1)\" <img src=x>\u{1b}[2J";
        let blobs = [
            serde_json::json!({"schema": "olm.package", "name": hostile, "defaultChannel": hostile}),
            serde_json::json!({"schema": "olm.channel", "package": hostile, "name": hostile,
                "entries": [{"name": hostile, "replaces": hostile, "skips": [hostile]}]}),
            serde_json::json!({"schema": "olm.deprecations", "package": hostile, "entries": [
                {"reference": {"schema": "olm.package"}, "message": "m"},
                {"reference": {"schema": "olm.channel", "name": hostile}, "message": "m"},
                {"reference": {"schema": "olm.bundle", "name": hostile}, "message": "m"}]}),
        ];
        let text: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
        let catalog: Catalog = load::text(&text).unwrap().into_iter().collect();
        let drawing = draw(
            &catalog,
            &Selection {
                v0_semantics: true,
                ..Selection::default()
            },
        )
        .unwrap();
        let known = [
            "graph",
            "classDef",
            "%%",
            "subgraph",
            "end",
            "style",
            "class",
            "linkStyle",
            "x_22_",
        ];
        for line in drawing.text.lines() {
            assert!(known.iter().any(|word| line.trim_start().starts_with(word)), "{line}");
            assert!(line.matches('"').count() % 2 == 0, "{line}");
            assert!(!line.contains(['\u{1b}', '<']) || line.contains("skipRange"), "{line}");
        }
    }
}
