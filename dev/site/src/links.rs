//! Links in Markdown and in the pages made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Result, bail};
use regex::{Captures, Regex};

static MARKDOWN: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\]\()([^)\s]+)(\))"));
static TARGET: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?:href|src)="([^"]*)""#));
static ID: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\sid="([^"]+)""#));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of ours")
}

/// Replaces the link targets for which `other` returns another. Fenced code is not changed.
pub fn in_markdown(text: &str, mut other: impl FnMut(&str) -> Option<String>) -> String {
    let mut fenced = false;
    let lines = text.split_inclusive('\n').map(|line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            return line.to_owned();
        }
        let replace = |found: &Captures<'_>| {
            let target = &found[2];
            let is_file = !target.contains("://") && !target.starts_with('#');
            let new = is_file.then(|| other(target)).flatten();
            format!("{}{}{}", &found[1], new.as_deref().unwrap_or(target), &found[3])
        };
        MARKDOWN.replace_all(line, replace).into_owned()
    });
    lines.collect()
}

/// A path relative to a directory, without `..`. `None` if it leaves the root.
pub fn joined(folder: &Path, file: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}

/// Checks the links among the pages of a site. Gives their number.
pub fn check(site: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    read(site, site, &mut pages, &mut files)?;
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path, ids(text))).collect();
    let mut dead = Vec::new();
    for (page, text) in pages.iter().filter(|(page, _)| !page.ends_with("404.html")) {
        for found in TARGET.captures_iter(text) {
            let target = found[1].replace("&amp;", "&");
            if target.contains(':') || target.is_empty() {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match file {
                "" => Some(page.clone()),
                file => joined(page.parent().unwrap_or(Path::new("")), file),
            };
            let leads = path.is_some_and(|path| {
                let has_anchor = anchor.is_empty() || ids.get(&path).is_some_and(|ids| ids.contains(anchor));
                files.contains(&path) && has_anchor
            });
            if !leads {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    dead.sort();
    dead.dedup();
    if !dead.is_empty() {
        bail!("dead links:\n{}", dead.join("\n"));
    }
    Ok(pages.len())
}

fn ids(text: &str) -> BTreeSet<&str> {
    ID.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str())).collect()
}

fn read(site: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(site, &path, pages, files)?;
            continue;
        }
        let name = path.strip_prefix(site)?.to_owned();
        if name.extension().is_some_and(|ending| ending == "html") {
            pages.insert(name.clone(), std::fs::read_to_string(&path)?);
        }
        files.insert(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_prose_are_replaced_and_those_in_code_are_not() {
        let text = "see [a](../A.md), [b](b.md)\n```\n[a](../A.md)\n```\n";
        let made = in_markdown(text, |target| target.starts_with("..").then(|| "there".to_owned()));
        assert_eq!(made, "see [a](there), [b](b.md)\n```\n[a](../A.md)\n```\n");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let site = std::env::temp_dir().join(format!("site-{}", std::process::id()));
        std::fs::create_dir_all(&site).unwrap();
        let page = |name: &str, text: &str| std::fs::write(site.join(name), text).unwrap();
        page("a.html", r##"<h1 id="x"></h1><a href="b.html#y">b</a><a href="#x">x</a>"##);
        page("b.html", r##"<h1 id="y"></h1>"##);
        assert_eq!(check(&site).unwrap(), 2);
        page("b.html", r##"<a href="c.html">c</a>"##);
        let error = check(&site).unwrap_err().to_string();
        assert!(error.contains("a.html: b.html#y") && error.contains("b.html: c.html"), "{error}");
        std::fs::remove_dir_all(&site).unwrap();
    }
}
