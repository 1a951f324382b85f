//! Catalog commands against the recorded answers of opm 1.73.0.
//!
//! The inputs and answers stand outside the repository: in `$OLMKIT_CORPUS`, else in `../shared/corpus` beside the
//! workspace. Where they are absent the tests say so and pass.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olmkit::catalog::render::MigrateLevel;
use olmkit::catalog::render::reference::{Directory, ImageTemplate, Images, Options, Unpacked, render};
use olmkit::catalog::write::Format;
use olmkit::catalog::{order, write};
use serde_json::Value;

fn corpus() -> Option<PathBuf> {
    let root = match std::env::var_os("OLMKIT_CORPUS") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
    };
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: no corpus at {}", root.display());
    None
}

struct NoImages;

impl Images for NoImages {
    fn unpack(&self, reference: &str) -> Result<Unpacked, String> {
        Err(format!("no such image: {reference}"))
    }
}

/// Renders as `opm render` prints it, or the error text.
fn rendered(path: &Path, options: &Options, format: Format) -> Result<String, String> {
    let catalog =
        render(&[path.to_string_lossy().into_owned()], options, &NoImages).map_err(|error| match *error.source {
            olmkit::catalog::render::Error::Catalog(error) => error.opm_text(),
            other => other.to_string(),
        })?;
    let mut out = Vec::new();
    write::all(&order::blobs(catalog), format, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

fn migrated() -> Options {
    let template: ImageTemplate = "registry.example.com/{{.Package}}:{{.Name}}".parse().unwrap();
    Options {
        migrate: MigrateLevel::BundleObjectToCsvMetadata,
        image_template: Some(template),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Counts agreement and keeps the first disagreements for the message.
#[derive(Default)]
struct Tally {
    equal: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, name: &str, ours: &str, theirs: &str) {
        if ours == theirs {
            self.equal += 1;
        } else {
            let line = ours
                .lines()
                .zip(theirs.lines())
                .position(|(ours, theirs)| ours != theirs);
            let at = line.unwrap_or_else(|| ours.lines().count().min(theirs.lines().count()));
            let show = |text: &str| -> String { text.lines().nth(at).unwrap_or("<end>").chars().take(300).collect() };
            self.wrong.push(format!(
                "{name}: line {}\n    ours   {}\n    theirs {}",
                at + 1,
                show(ours),
                show(theirs)
            ));
        }
    }

    fn finish(self, what: &str) {
        println!("{what}: {} equal, {} different", self.equal, self.wrong.len());
        assert!(
            self.wrong.is_empty(),
            "{what}:\n{}",
            self.wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
        );
    }
}

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
    let Some(corpus) = corpus() else { return };
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
    let Some(corpus) = corpus() else { return };
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
                    let digest = olmkit::image::Digest::of(ours.as_bytes());
                    tally.compare(
                        &format!("{name} {answer}"),
                        digest.hex(),
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
    let Some(corpus) = corpus() else { return };
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

/// As opm words it: without the file.
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
    let Some(corpus) = corpus() else { return };
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
                tally.compare(name, olmkit::image::Digest::of(ours.as_bytes()).hex(), digest);
            }
            None => {
                let ours = ours.unwrap_or_else(|error| format!("render reference \"{name}\": {error}\n"));
                let theirs = format!(
                    "{}{}",
                    record["stdout"].as_str().unwrap_or_default(),
                    record["stderr"].as_str().unwrap_or_default()
                );
                // Which of several files that are no blobs is named depends on opm's threads.
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

#[allow(dead_code)]
fn directory_image(path: PathBuf, labels: BTreeMap<String, String>) -> Unpacked {
    Unpacked {
        directory: Directory::Kept(path),
        labels,
    }
}

#[test]
fn catalogs_get_the_verdicts_of_opm() {
    let Some(corpus) = corpus() else { return };
    let mut tally = Tally::default();
    for name in names(&corpus.join("catalogs")) {
        let verdict = olmkit::catalog::validate::directory(&corpus.join("catalogs").join(&name));
        tally.compare(&name, &verdict.opm_text.unwrap_or_default(), "");
    }
    tally.finish("catalogs, validate");
    let mut tally = Tally::default();
    for name in names(&corpus.join("catalogs-broken")) {
        let record = corpus.join("expected/catalogs-broken").join(format!("{name}.json"));
        let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
        let verdict = olmkit::catalog::validate::directory(&corpus.join("catalogs-broken").join(&name));
        let ours = sorted_lines(&verdict.opm_text.unwrap_or_default());
        tally.compare(&name, &ours, &sorted_lines(record["stderr"].as_str().unwrap()));
    }
    tally.finish("broken catalogs, validate");
}

/// opm prints the siblings of a tree in any order.
fn sorted_lines(text: &str) -> String {
    let strip = |line: &str| line.trim_start_matches([' ', '│', '├', '└', '─']).to_owned();
    let mut lines: Vec<String> = text.lines().map(strip).collect();
    lines.sort();
    lines.join("\n")
}

fn lines_sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn lists_and_graphs_are_those_of_opm() {
    use olmkit::catalog::{listing, load, mermaid};
    let Some(corpus) = corpus() else { return };
    let mut tally = Tally::default();
    for name in names(&corpus.join("catalogs")) {
        let catalog = load::directory(&corpus.join("catalogs").join(&name)).unwrap();
        let draw = |v0_semantics| {
            let options = mermaid::Options {
                v0_semantics,
                ..mermaid::Options::default()
            };
            mermaid::draw(&catalog, &options).unwrap().text
        };
        for (file, ours) in [
            ("list-packages.txt", listing::packages(&catalog).to_string()),
            ("list-channels.txt", listing::channels(&catalog, None).to_string()),
            ("list-bundles.txt", listing::bundles(&catalog, None).to_string()),
            ("graph.mermaid", draw(false)),
            ("graph-v0.mermaid", draw(true)),
        ] {
            let Ok(theirs) = std::fs::read_to_string(corpus.join("expected/catalogs").join(&name).join(file)) else {
                continue;
            };
            // Lines of styles and entries of equal version come in any order.
            tally.compare(&format!("{name} {file}"), &lines_sorted(&ours), &lines_sorted(&theirs));
        }
    }
    tally.finish("list and graph");
}

struct TemplateBundles {
    root: PathBuf,
}

impl Images for TemplateBundles {
    fn unpack(&self, reference: &str) -> Result<Unpacked, String> {
        let rest = reference
            .strip_prefix("localhost:5000/example/")
            .ok_or("unknown registry")?;
        let directory = self.root.join(rest.replace(':', "/"));
        if !directory.is_dir() {
            return Err(format!("failed to pull image \"{reference}\""));
        }
        let labels = BTreeMap::from([(
            "operators.operatorframework.io.bundle.package.v1".to_owned(),
            rest.split(':').next().unwrap().to_owned(),
        )]);
        Ok(directory_image(directory, labels))
    }
}

impl olmkit::catalog::template::Bundles for TemplateBundles {
    fn render(&self, reference: &str) -> Result<olmkit::catalog::Catalog, String> {
        let options = Options {
            migrate: MigrateLevel::None,
            image_template: None,
        };
        olmkit::catalog::render::reference::render_one(reference, &options, self).map_err(|error| error.to_string())
    }
}

#[test]
fn templates_render_as_opm_renders_them() {
    use olmkit::catalog::{mermaid, template};
    let Some(corpus) = corpus() else { return };
    let templates = corpus.join("templates");
    let mut tally = Tally::default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&templates)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let kind = match name.split('-').next().unwrap() {
            "basic" => template::Kind::Basic,
            "semver" => template::Kind::Semver,
            _ => template::Kind::Substitutes,
        };
        let result = std::fs::read_to_string(templates.join(format!("expected/{name}.result.json"))).unwrap();
        let result: Value = serde_json::from_str(&result).unwrap();
        for (answer, migrate) in [
            ("json", MigrateLevel::None),
            ("yaml", MigrateLevel::None),
            ("migrated.yaml", MigrateLevel::BundleObjectToCsvMetadata),
            ("mermaid", MigrateLevel::None),
        ] {
            let bundles = TemplateBundles {
                root: templates.join("bundles"),
            };
            let ours = template::render(&text, Some(kind), &bundles, migrate)
                .map_err(|error| error.to_string())
                .map(|catalog| {
                    if answer == "mermaid" {
                        let options = mermaid::Options {
                            v0_semantics: true,
                            ..mermaid::Options::default()
                        };
                        return lines_sorted(&mermaid::draw(&catalog, &options).unwrap().text);
                    }
                    let format = if answer == "json" { Format::Json } else { Format::Yaml };
                    let mut out = Vec::new();
                    write::all(&order::blobs(catalog), format, &mut out).unwrap();
                    String::from_utf8(out).unwrap()
                });
            let case = format!("{name} {answer}");
            match std::fs::read_to_string(templates.join(format!("expected/{name}.{answer}"))) {
                Ok(theirs) if result[answer]["exit"] == 0 => {
                    let theirs = if answer == "mermaid" {
                        lines_sorted(&theirs)
                    } else {
                        theirs
                    };
                    tally.compare(&case, &ours.unwrap_or_else(|error| error), &theirs);
                }
                _ => {
                    // The registry's own words, and which of two equal versions is named first, are left out.
                    let cut = |text: &str| {
                        let text = text.split("bundle version ").next().unwrap_or_default();
                        text.split("failed to pull image")
                            .next()
                            .unwrap_or_default()
                            .trim()
                            .to_owned()
                    };
                    let ours = format!("Error: rendering template: {}", ours.unwrap_err());
                    tally.compare(&case, &cut(&ours), &cut(result[answer]["stderr"].as_str().unwrap()));
                }
            }
        }
    }
    for name in names(&templates.join("convert")) {
        let folder = templates.join("convert").join(&name);
        let text = std::fs::read_to_string(folder.join("catalog.yaml")).unwrap();
        for (answer, kind, format) in [
            ("basic.json", template::Kind::Basic, Format::Json),
            ("basic.yaml", template::Kind::Basic, Format::Yaml),
            ("substitutes.json", template::Kind::Substitutes, Format::Json),
            ("substitutes.yaml", template::Kind::Substitutes, Format::Yaml),
        ] {
            let theirs = std::fs::read_to_string(folder.join(answer)).unwrap();
            tally.compare(
                &format!("{name} {answer}"),
                &template::convert(&text, kind, format).unwrap(),
                &theirs,
            );
        }
    }
    tally.finish("templates");
}
