//! Differences between two images: settings, labels, files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::digest::{Algorithm, Digest, DigestReader};
use super::error::Error;
use super::layout::{Image, Layout};
use super::spec::RunConfig;
use super::unpack::{Item, Limits, for_each_path};

/// One difference. A side that has nothing there is `None`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The name of the difference: `label NAME`, `file PATH`, `entrypoint`, …
    pub what: String,
    /// The first image's value.
    pub first: Option<String>,
    /// The second image's value.
    pub second: Option<String>,
}

/// Compares the files and settings of two images. Layer boundaries, times, compression and media types do not count.
pub fn diff(first: (&Layout, &Image), second: (&Layout, &Image)) -> Result<Vec<Difference>, Error> {
    let one = facts(first.0, first.1)?;
    let two = facts(second.0, second.1)?;
    let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    let differences = names
        .into_iter()
        .filter(|name| one.get(*name) != two.get(*name))
        .map(|name| Difference {
            what: name.clone(),
            first: one.get(name).cloned(),
            second: two.get(name).cloned(),
        });
    Ok(differences.collect())
}

fn facts(layout: &Layout, image: &Image) -> Result<BTreeMap<String, String>, Error> {
    let mut facts = settings(&image.config.config);
    facts.insert(
        "platform".to_owned(),
        format!("{}/{}", image.config.os, image.config.architecture),
    );
    for_each_path(layout, image, &Limits::default(), |names, item| {
        let description = describe(item).map_err(|source| Error::File {
            action: "read",
            path: names.first().map(PathBuf::from).unwrap_or_default(),
            source,
        })?;
        let named = names.iter().map(|name| (format!("file /{name}"), description.clone()));
        facts.extend(named);
        Ok(())
    })?;
    Ok(facts)
}

fn describe(item: Item<'_>) -> io::Result<String> {
    let (executable, content) = match item {
        Item::Directory => return Ok("directory".to_owned()),
        Item::Link(target) => return Ok(format!("link to {}", target.display())),
        Item::File { executable, content } => (executable, content),
    };
    let mut reader = DigestReader::new(content, Algorithm::Sha256);
    io::copy(&mut reader, &mut io::sink())?;
    let (digest, size): (Digest, u64) = reader.finish();
    let executable = if executable { ", executable" } else { "" };
    Ok(format!("{size} bytes, {digest}{executable}"))
}

fn settings(config: &RunConfig) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut list = |name: &str, words: &[String]| {
        if !words.is_empty() {
            facts.insert(name.to_owned(), format!("{words:?}"));
        }
    };
    list("entrypoint", &config.entrypoint);
    list("cmd", &config.cmd);
    list(
        "user",
        std::slice::from_ref(&config.user)
            .iter()
            .filter(|user| !user.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .as_slice(),
    );
    // An absent working directory is the root.
    if !matches!(config.working_dir.as_str(), "" | "/") {
        facts.insert("workdir".to_owned(), config.working_dir.clone());
    }
    for variable in &config.env {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        facts.insert(format!("env {name}"), value.to_owned());
    }
    for (name, value) in &config.labels {
        facts.insert(format!("label {name}"), value.clone());
    }
    for port in config.exposed_ports.keys() {
        facts.insert(format!("port {port}"), "exposed".to_owned());
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Recipe;
    use crate::layer::{Content, LayerBuilder};
    use crate::spec::{MediaTypes, Platform};

    fn built(layout: &Layout, files: &[(&str, &str)], change: impl FnOnce(&mut Recipe)) -> Image {
        let mut recipe = Recipe::new(Platform::host(), 0);
        for (path, text) in files {
            let mut layer = LayerBuilder::new();
            layer
                .file(path, Content::Bytes(text.as_bytes().to_vec()), false)
                .unwrap();
            recipe.layers.push(("file".to_owned(), layer));
        }
        change(&mut recipe);
        let descriptor = recipe.build(layout).unwrap();
        layout.image(&descriptor, &Platform::host()).unwrap()
    }

    #[test]
    fn only_what_a_user_sees_counts() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let one = built(&layout, &[("/a", "x"), ("/b", "y")], |_| {});
        let two = built(&layout, &[("/b", "y"), ("/a", "x")], |recipe| {
            recipe.time = 7;
            recipe.media_types = MediaTypes::Docker;
            recipe.config.working_dir = "/".to_owned();
        });
        assert_eq!(diff((&layout, &one), (&layout, &two)).unwrap(), []);
        let three = built(&layout, &[("/a", "z"), ("/c/d", "y")], |recipe| {
            recipe.config.labels.insert("k".to_owned(), "v".to_owned());
        });
        let names: Vec<String> = diff((&layout, &one), (&layout, &three))
            .unwrap()
            .into_iter()
            .map(|difference| difference.what)
            .collect();
        assert_eq!(names, ["file /a", "file /b", "file /c", "file /c/d", "label k"]);
    }
}
