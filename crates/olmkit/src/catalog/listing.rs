//! `catalog list`: tables of packages, channels and bundles, laid out as opm lays them out.

use super::graph;
use super::model::{Catalog, Channel, Package};
use super::objects;
use crate::object::UntrustedText;

/// A table: headings and rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Headings.
    pub headings: Vec<&'static str>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

impl std::fmt::Display for Table {
    /// Columns two blanks apart, the last one not padded: Go's tab writer.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headings: Vec<String> = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        // A name with a line end would forge a row.
        let shown = |row: &Vec<String>| row.iter().map(|cell| UntrustedText::new(cell).to_string()).collect();
        let lines: Vec<Vec<String>> = std::iter::once(headings).chain(self.rows.iter().map(shown)).collect();
        let width = |column: usize| {
            lines
                .iter()
                .filter_map(|line| line.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
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

/// Packages with display name and default channel. The display name is that of the default channel's head, where the
/// catalog holds its CSV.
pub fn packages(catalog: &Catalog) -> Table {
    let mut rows: Vec<Vec<String>> = catalog
        .packages
        .iter()
        .map(|package| {
            vec![
                package.name.clone(),
                display_name(catalog, package).unwrap_or_default(),
                package.default_channel.clone(),
            ]
        })
        .collect();
    rows.sort();
    Table {
        headings: vec!["NAME", "DISPLAY NAME", "DEFAULT CHANNEL"],
        rows,
    }
}

fn display_name(catalog: &Catalog, package: &Package) -> Option<String> {
    let channel = catalog
        .channels
        .iter()
        .find(|channel| channel.package == package.name && channel.name == package.default_channel)?;
    let head = *graph::heads(channel.entries()).first()?;
    let bundle = catalog
        .bundles
        .iter()
        .find(|bundle| bundle.package == package.name && bundle.name == head)?;
    let objects = objects::of(bundle);
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
            vec![channel.package.clone(), channel.name.clone(), head.to_owned()]
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
    for channel in chosen(catalog, package) {
        let mut entries: Vec<_> = channel.entries().iter().collect();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        for entry in entries {
            let bundle = catalog
                .bundles
                .iter()
                .find(|bundle| bundle.package == channel.package && bundle.name == entry.name);
            rows.push(vec![
                channel.package.clone(),
                channel.name.clone(),
                entry.name.clone(),
                entry.replaces.clone(),
                entry.skips.join(","),
                entry.skip_range.clone(),
                bundle.map(|bundle| bundle.image.clone()).unwrap_or_default(),
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
