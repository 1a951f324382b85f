//! Builds the documentation site from `docs/` and checks its links: `site REPOSITORY OUTPUT`.
//!
//! The pages are also read on the code host, so their links refer to files. Links that leave `docs/` become links to
//! the repository. A link to a page, a heading or a file that does not exist fails the build. Links to other sites are
//! not checked.

mod links;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use mdbook_preprocessor::book::{Book, BookItem};
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let [repository, output] = arguments.as_slice() else {
        bail!("usage: site REPOSITORY OUTPUT");
    };
    let repository = repository.canonicalize().context("the repository")?;
    std::fs::create_dir_all(output)?;
    let output = output.canonicalize()?;
    let mut config = Config::from_disk(repository.join("dev/site/book.toml"))?;
    config.build.build_dir = output.clone();
    let mut book = MDBook::load_with_config(&repository, config)?;
    book.with_preprocessor(Outward {
        host: host(&repository)?,
        repository: repository.clone(),
    });
    book.build()?;
    unlisted(&repository.join("docs"))?;
    let pages = links::check(&output)?;
    println!("{pages} pages, every link leads somewhere: {}/index.html", output.display());
    Ok(())
}

/// The repository's web address, from its Cargo.toml.
fn host(repository: &Path) -> Result<String> {
    let manifest = std::fs::read_to_string(repository.join("Cargo.toml"))?;
    let mut lines = manifest.lines();
    let line = lines.find_map(|line| line.strip_prefix("repository = "));
    let url = line.context("Cargo.toml names no repository")?.trim_matches('"');
    Ok(format!("{url}/blob/main"))
}

/// Fails for a page that the summary does not name, which would be on the code host only.
fn unlisted(docs: &Path) -> Result<()> {
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md"))?;
    for folder in [docs.to_owned(), docs.join("tutorial")] {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(docs)?.display().to_string();
            if name.ends_with(".md") && name != "SUMMARY.md" && !summary.contains(&format!("({name})")) {
                bail!("docs/SUMMARY.md does not name {name}");
            }
        }
    }
    Ok(())
}

/// Turns links that leave `docs/` into links to the repository.
struct Outward {
    repository: PathBuf,
    host: String,
}

impl Preprocessor for Outward {
    fn name(&self) -> &str {
        "outward"
    }

    fn run(&self, _: &PreprocessorContext, mut book: Book) -> Result<Book> {
        let mut dead = Vec::new();
        book.for_each_mut(|item| {
            if let BookItem::Chapter(chapter) = item
                && let Some(path) = &chapter.source_path
            {
                let folder = Path::new("docs").join(path.parent().unwrap_or(Path::new("")));
                chapter.content = self.rewritten(&chapter.content, &folder, &mut dead);
            }
        });
        if !dead.is_empty() {
            bail!("dead links:\n{}", dead.join("\n"));
        }
        Ok(book)
    }
}

impl Outward {
    fn rewritten(&self, content: &str, folder: &Path, dead: &mut Vec<String>) -> String {
        links::in_markdown(content, |target| {
            let (file, anchor) = target.split_once('#').map_or((target, ""), |(file, anchor)| (file, anchor));
            let path = links::joined(folder, file)?;
            let is_page = path.starts_with("docs") && !path.extension().is_some_and(|ending| ending == "json");
            if is_page {
                // mdBook serves a README as the index of its directory.
                return target.contains("README.md").then(|| target.replace("README.md", "index.md"));
            }
            if !self.repository.join(&path).exists() {
                dead.push(format!("{}: {target}", folder.display()));
            }
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            Some(format!("{}/{}{anchor}", self.host, path.display()))
        })
    }
}
