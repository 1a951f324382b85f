//! Bundles and catalogs as `opm render` prints them.

use std::collections::BTreeMap;
use std::path::Path;

use olmkit::catalog::render::MigrateLevel;
use olmkit::catalog::render::reference::Options;
use olmkit::catalog::write::Format;
use olmkit::catalog::{order, write};
use serde_json::Value;

use super::{Tally, corpus, migrated, names, rendered, sha256};

/// Go sorts related images unstably in lists over 12: entries with one image are put in order of name.
fn stable_images(text: &str) -> String {
    let mut value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => return text.to_owned(),
    };
    if let Some(images) = value.get_mut("relatedImages").and_then(Value::as_array_mut)
        && images.len() > 12
    {
        images.sort_by_key(|image| (image["image"].to_string(), image["name"].to_string()));
        return serde_json::to_string_pretty(&value).unwrap();
    }
    text.to_owned()
}

#[test]
fn real_bundles_render_as_opm_renders_them() {
    let Some(corpus) = corpus("") else { return };
    let (bundles, expected) = (corpus.join("bundles"), corpus.join("expected/render"));
    let (mut plain, mut migrated_tally) = (Tally::default(), Tally::default());
    for name in names(&bundles) {
        let path = bundles.join(&name);
        let ours = rendered(&path, &Options::default(), Format::Json);
        match std::fs::read_to_string(expected.join(format!("{name}.json"))) {
            Ok(theirs) => plain.compare(
                &name,
                &stable_images(&ours.unwrap_or_else(|error| error)),
                &stable_images(&theirs),
            ),
            Err(_) => {
                let error = std::fs::read_to_string(expected.join(format!("{name}.error.json"))).unwrap();
                let error: Value = serde_json::from_str(&error).unwrap();
                let theirs = error["stderr"].as_str().unwrap();
                let ours = format!("render reference \"{name}\": {}\n", ours.unwrap_err());
                plain.compare(&name, &ours, theirs);
                continue;
            }
        }
        let ours = rendered(&path, &migrated(), Format::Json).unwrap_or_else(|error| error);
        let theirs = std::fs::read_to_string(expected.join(format!("{name}.migrated.json"))).unwrap();
        migrated_tally.compare(&name, &stable_images(&ours), &stable_images(&theirs));
    }
    plain.finish("bundles, render -o json");
    migrated_tally.finish("bundles, render --migrate-level=bundle-object-to-csv-metadata");
}

#[test]
fn catalogs_render_as_opm_renders_them() {
    let Some(corpus) = corpus("") else { return };
    let (catalogs, expected) = (corpus.join("catalogs"), corpus.join("expected/catalogs"));
    let mut tally = Tally::default();
    let migrate = Options {
        migrate: MigrateLevel::BundleObjectToCsvMetadata,
        image_template: None,
    };
    for name in names(&catalogs) {
        let summary = std::fs::read_to_string(expected.join(&name).join("summary.json")).unwrap();
        let summary: BTreeMap<String, Value> = serde_json::from_str(&summary).unwrap();
        for (answer, options, format) in [
            ("render.json", Options::default(), Format::Json),
            ("render.yaml", Options::default(), Format::Yaml),
            ("render-migrated.yaml", migrate.clone(), Format::Yaml),
        ] {
            let Some(recorded) = summary.get(answer) else { continue };
            let ours = rendered(&catalogs.join(&name), &options, format).unwrap_or_else(|error| error);
            let file = recorded.get("file").or(recorded.get("same_as")).and_then(Value::as_str);
            match file.and_then(|file| std::fs::read_to_string(expected.join(&name).join(file)).ok()) {
                Some(theirs) => tally.compare(&format!("{name} {answer}"), &ours, &theirs),
                None => {
                    tally.compare(
                        &format!("{name} {answer}"),
                        &sha256(&ours),
                        recorded["stdout_sha256"].as_str().unwrap(),
                    );
                }
            }
        }
    }
    tally.finish("catalogs, render");
}

#[test]
fn broken_catalogs_render_or_fail_as_in_opm() {
    let Some(corpus) = corpus("") else { return };
    let (catalogs, expected) = (corpus.join("catalogs-broken"), corpus.join("expected/catalogs-broken"));
    let mut tally = Tally::default();
    for name in names(&catalogs) {
        let record = std::fs::read_to_string(expected.join(format!("{name}.json"))).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        let ours = match render_text(&catalogs.join(&name)) {
            Ok(text) => text,
            Err(error) => format!("render reference \"{name}\": {error}\n"),
        };
        let theirs = format!(
            "{}{}",
            record["render"]["stdout"].as_str().unwrap_or_default(),
            record["render"]["stderr"].as_str().unwrap_or_default()
        );
        tally.compare(&name, &ours, &theirs);
    }
    tally.finish("broken catalogs, render");
}

/// opm's message, without the file.
fn render_text(path: &Path) -> Result<String, String> {
    let catalog = olmkit::catalog::load::directory(path).map_err(|error| error.opm_text())?;
    let mut catalog = catalog;
    catalog.bundles.iter_mut().for_each(olmkit::catalog::render::touch_up);
    let mut out = Vec::new();
    write::all(&order::blobs(catalog), Format::Json, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn micro_bundles_render_or_fail_as_in_opm() {
    let Some(corpus) = corpus("") else { return };
    let micro = corpus.join("micro");
    let mut tally = Tally::default();
    for line in std::fs::read_to_string(micro.join("render.jsonl")).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let name = record["name"].as_str().unwrap();
        // A link to a directory, where the copy has kept the link.
        if name == "load-1-07" && !micro.join(name).join("manifests").is_symlink() {
            continue;
        }
        let ours = rendered(&micro.join(name), &Options::default(), Format::Json);
        match record["stdout_sha256"].as_str() {
            Some(digest) => {
                let ours = ours.unwrap_or_else(|error| error);
                tally.compare(name, &sha256(&ours), digest);
            }
            None => {
                let ours = ours.unwrap_or_else(|error| format!("render reference \"{name}\": {error}\n"));
                let theirs = format!(
                    "{}{}",
                    record["stdout"].as_str().unwrap_or_default(),
                    record["stderr"].as_str().unwrap_or_default()
                );
                // If several files are invalid, the one that opm names depends on its threads.
                let cut = |text: &str| match text.split_once(": object '") {
                    Some((before, _)) if text.contains("is missing root schema field") => before.to_owned(),
                    _ => text.to_owned(),
                };
                tally.compare(name, &cut(&ours), &cut(&theirs));
            }
        }
    }
    tally.finish("micro bundles, render");
}
