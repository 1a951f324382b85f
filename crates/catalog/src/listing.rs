//! `catalog list`: tables of packages, channels and bundles, laid out as opm lays them out.

use std::collections::HashMap;

use super::graph;
use super::model::{Bundle, Catalog, Channel, Package};
use super::objects;
use olmkit_base::limits;
use olmkit_base::object::UntrustedText;

/// Maximum width of an aligned column in characters, including padding.
const MOST_PADDING: usize = 16 << 20;

/// A table: headings and rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Headings.
    pub headings: Vec<&'static str>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

impl std::fmt::Display for Table {
    /// Two spaces between columns, no padding of the last one: as Go's tab writer.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headings: Vec<String> = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        // A name with a line end would forge a row.
        let shown = |row: &Vec<String>| row.iter().map(|cell| UntrustedText::new(cell).to_string()).collect();
        let lines: Vec<Vec<String>> = std::iter::once(headings).chain(self.rows.iter().map(shown)).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or_default();
            // One name of a megabyte must not make every row a megabyte long.
            if widest.saturating_mul(lines.len()) > MOST_PADDING {
                0
            } else {
                widest
            }
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        for line in &lines {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if column + 1 == self.headings.len() {
                    writeln!(formatter, "{cell}")?;
                } else {
                    write!(formatter, "{cell:width$}  ")?;
                }
            }
        }
        Ok(())
    }
}

/// Packages with display name and default channel. The display name is that of the default channel's head, if the
/// catalog contains its CSV.
pub fn packages(catalog: &Catalog) -> Table {
    let (bundles, mut default_channels) = (by_name(catalog), HashMap::new());
    for channel in &catalog.channels {
        let key = (channel.package.as_str(), channel.name.as_str());
        default_channels.entry(key).or_insert(channel);
    }
    let mut rows: Vec<Vec<String>> = catalog
        .packages
        .iter()
        .map(|package| {
            vec![
                cell(&package.name),
                display_name(package, &default_channels, &bundles).unwrap_or_default(),
                cell(&package.default_channel),
            ]
        })
        .collect();
    rows.sort();
    Table {
        headings: vec!["NAME", "DISPLAY NAME", "DEFAULT CHANNEL"],
        rows,
    }
}

/// A name in a table, which each row may repeat.
fn cell(name: &str) -> String {
    limits::name(name)
}

/// Packages with names of something, and the first of each.
type ByName<'c, T> = HashMap<(&'c str, &'c str), &'c T>;

fn by_name(catalog: &Catalog) -> ByName<'_, Bundle> {
    let mut bundles = HashMap::new();
    for bundle in &catalog.bundles {
        let key = (bundle.package.as_str(), bundle.name.as_str());
        bundles.entry(key).or_insert(bundle);
    }
    bundles
}

fn display_name(package: &Package, channels: &ByName<'_, Channel>, bundles: &ByName<'_, Bundle>) -> Option<String> {
    let name = package.name.as_str();
    let channel = channels.get(&(name, package.default_channel.as_str()))?;
    let head = *graph::heads(channel.entries()).first()?;
    let bundle = bundles.get(&(name, head))?;
    let objects = objects::inline(bundle);
    let csv: serde_json::Value = serde_json::from_str(objects::csv(&objects)?).ok()?;
    csv.pointer("/spec/displayName")?.as_str().map(str::to_owned)
}

fn chosen<'c>(catalog: &'c Catalog, package: Option<&str>) -> Vec<&'c Channel> {
    let mut channels: Vec<&Channel> = catalog
        .channels
        .iter()
        .filter(|channel| package.is_none_or(|package| channel.package == package))
        .collect();
    channels.sort_by(|left, right| (&left.package, &left.name).cmp(&(&right.package, &right.name)));
    channels
}

/// Channels with their heads.
pub fn channels(catalog: &Catalog, package: Option<&str>) -> Table {
    let rows = chosen(catalog, package)
        .into_iter()
        .map(|channel| {
            let head = graph::heads(channel.entries()).first().copied().unwrap_or_default();
            vec![cell(&channel.package), cell(&channel.name), cell(head)]
        })
        .collect();
    Table {
        headings: vec!["PACKAGE", "CHANNEL", "HEAD"],
        rows,
    }
}

/// Channel entries with their edges and images.
pub fn bundles(catalog: &Catalog, package: Option<&str>) -> Table {
    let mut rows = Vec::new();
    let of_name = by_name(catalog);
    for channel in chosen(catalog, package) {
        let mut entries: Vec<_> = channel.entries().iter().collect();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        for entry in entries {
            let bundle = of_name.get(&(channel.package.as_str(), entry.name.as_str()));
            rows.push(vec![
                cell(&channel.package),
                cell(&channel.name),
                cell(&entry.name),
                cell(&entry.replaces),
                entry.skips.join(","),
                cell(&entry.skip_range),
                bundle.map(|bundle| cell(&bundle.image)).unwrap_or_default(),
            ]);
        }
    }
    Table {
        headings: vec![
            "PACKAGE",
            "CHANNEL",
            "BUNDLE",
            "REPLACES",
            "SKIPS",
            "SKIP RANGE",
            "IMAGE",
        ],
        rows,
    }
}
