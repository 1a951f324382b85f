//! The upgrade edge from a catalog.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// The name of the bundle at the head of a package's channel in a file-based catalog: the entry that nobody replaces or
/// skips.
pub fn head(catalog: &Path, package: &str, channel: &str) -> anyhow::Result<String> {
    let mut files = Vec::new();
    collect(catalog, &mut files).with_context(|| format!("cannot read {}", catalog.display()))?;
    for file in files {
        let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for node in olmkit::yaml::documents(&bytes) {
            let blob = node
                .and_then(|node| node.to_json())
                .with_context(|| format!("{}", file.display()))?;
            let text = |field: &str| blob.get(field).and_then(Value::as_str);
            if text("schema") == Some("olm.channel")
                && text("package") == Some(package)
                && text("name") == Some(channel)
            {
                return head_of(&blob).with_context(|| format!("{}: channel {channel}", file.display()));
            }
        }
    }
    bail!(
        "{}: package {package} has no channel {channel} there",
        catalog.display()
    )
}

fn collect(path: &Path, files: &mut Vec<std::path::PathBuf>) -> std::io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries: Vec<_> = std::fs::read_dir(path)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        collect(&entry.path(), files)?;
    }
    Ok(())
}

fn head_of(channel: &Value) -> anyhow::Result<String> {
    let entries: Vec<&Value> = channel
        .get("entries")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut heads: Vec<String> = entries.iter().map(|entry| text(entry, "name")).collect();
    for entry in &entries {
        let skips = entry.get("skips").and_then(Value::as_array).into_iter().flatten();
        let below: Vec<String> = skips
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .chain([text(entry, "replaces")])
            .collect();
        heads.retain(|name| !below.contains(name));
    }
    match heads.as_slice() {
        [head] => Ok(head.clone()),
        [] => bail!("it has no head: its entries replace each other in a circle, or there is none"),
        several => bail!("it has several heads: {}", several.join(", ")),
    }
}
