//! Templates as opm renders and converts them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use olmkit::catalog::render::MigrateLevel;
use olmkit::catalog::render::reference::{Directory, Images, Options, Unpacked};
use olmkit::catalog::write::Format;
use olmkit::catalog::{mermaid, order, selection, template, write};
use serde_json::Value;

use super::{Tally, corpus, lines_sorted, names};

fn directory_image(path: PathBuf, labels: BTreeMap<String, String>) -> Unpacked {
    Unpacked {
        directory: Directory::Kept(path),
        labels,
    }
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
    let Some(corpus) = corpus("") else { return };
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
                        let options = selection::Selection {
                            v0_semantics: true,
                            ..selection::Selection::default()
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
                    // The registry's message, and the choice between two equal versions, are ignored.
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
