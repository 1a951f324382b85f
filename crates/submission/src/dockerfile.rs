//! Properties of the image that a Dockerfile builds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// An instruction. Its arguments by line, without comments and line continuations.
#[derive(Debug, Default)]
struct Instruction {
    keyword: String,
    lines: Vec<(u32, String)>,
}

/// The last stage, with the properties that it inherits from other stages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// The image that it starts from. `None` for `scratch`, or without a `FROM`.
    pub(crate) base: Option<String>,
    /// The labels with their lines.
    pub(crate) labels: BTreeMap<String, (u32, String)>,
    /// The user with its line.
    pub(crate) user: Option<(u32, String)>,
}

/// `KEY=VALUE`, both with quotes or without.
static PAIR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"([^\s="]+|"[^"]*")=("(?:[^"\\]|\\.)*"|'[^']*'|[^\s]*)"#).ok());
/// The word that ends a here-document.
static HERE_DOCUMENT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"<<-?\s*["']?([A-Za-z_]\w*)"#).ok());

fn instructions(text: &str) -> Vec<Instruction> {
    let mut all: Vec<Instruction> = Vec::new();
    let mut goes_on = false;
    let mut document_ends: Option<String> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(end) = &document_ends {
            if line == end {
                document_ends = None;
            }
            continue;
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let content = line.strip_suffix('\\').map_or(line, str::trim_end);
        if goes_on {
            if let Some(instruction) = all.last_mut() {
                instruction.lines.push((number, content.to_owned()));
            }
        } else {
            let (keyword, rest) = content.split_once([' ', '\t']).unwrap_or((content, ""));
            all.push(Instruction {
                keyword: keyword.to_ascii_uppercase(),
                lines: vec![(number, rest.trim().to_owned())],
            });
        }
        goes_on = line.ends_with('\\');
        let has_document = all
            .last()
            .is_some_and(|one| matches!(one.keyword.as_str(), "RUN" | "COPY" | "ADD"));
        if has_document {
            let found = HERE_DOCUMENT.as_ref().and_then(|pattern| pattern.captures(line));
            document_ends = found.and_then(|found| Some(found.get(1)?.as_str().to_owned()));
        }
    }
    all
}

impl Instruction {
    fn labels(&self) -> Vec<(String, (u32, String))> {
        let mut labels = Vec::new();
        for (number, line) in &self.lines {
            for pair in PAIR.iter().flat_map(|pattern| pattern.captures_iter(line)) {
                let part = |at| unquoted(pair.get(at).map_or("", |part| part.as_str()));
                labels.push((part(1), (*number, part(2))));
            }
        }
        // The form of the first days has one label and no `=`.
        if let ([(number, line)], true) = (self.lines.as_slice(), labels.is_empty())
            && let Some((key, value)) = line.split_once([' ', '\t'])
        {
            labels.push((unquoted(key), (*number, unquoted(value.trim()))));
        }
        labels
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flat_map(|(_, line)| line.split_whitespace())
    }
}

fn unquoted(text: &str) -> String {
    let inner = ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(text).replace("\\\"", "\"")
}

/// The labels of all stages with their lines. The last one of a name wins.
pub(crate) fn labels(text: &str) -> BTreeMap<String, (u32, String)> {
    let all = instructions(text);
    let labels = all.iter().filter(|one| one.keyword == "LABEL");
    labels.flat_map(Instruction::labels).collect()
}

/// The image that a Dockerfile builds: its last stage.
pub(crate) fn image(text: &str) -> Image {
    let mut stages: BTreeMap<String, Image> = BTreeMap::new();
    let (mut image, mut name) = (Image::default(), None);
    for instruction in instructions(text) {
        let line = instruction.lines.first().map_or(0, |(line, _)| *line);
        match instruction.keyword.as_str() {
            "FROM" => {
                let before = std::mem::take(&mut image);
                if let Some(name) = name.take() {
                    stages.insert(name, before);
                }
                let mut words = instruction.words().filter(|word| !word.starts_with("--"));
                let base = words.next().unwrap_or_default();
                image = match stages.get(&base.to_lowercase()) {
                    Some(stage) => stage.clone(),
                    None => Image {
                        base: (base != "scratch").then(|| base.to_owned()),
                        ..Image::default()
                    },
                };
                name = words.nth(1).map(str::to_lowercase);
            }
            "LABEL" => image.labels.extend(instruction.labels()),
            "USER" => image.user = instruction.words().next().map(|user| (line, user.to_owned())),
            _ => {}
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(labels: &BTreeMap<String, (u32, String)>) -> Vec<(&str, u32, &str)> {
        let labels = labels.iter();
        labels
            .map(|(key, (line, value))| (key.as_str(), *line, value.as_str()))
            .collect()
    }

    #[test]
    fn the_last_stage_counts_with_what_it_inherits() {
        let text = "ARG BASE=ubi9\nFROM golang:1 AS Build\nLABEL lost=1\nUSER root\n\
                    FROM --platform=$TARGETPLATFORM ${BASE} as common\n# USER 1\nLABEL a=\"x \\\"y\\\"\" \\\n  # no\n  b='c d' \"e\"=f\nUSER 1001:0\n\
                    FROM common\nRUN <<EOF\nLABEL no=1\nUSER 0\nEOF\nlabel g h i\n";
        let image = image(text);
        assert_eq!(image.base.as_deref(), Some("${BASE}"));
        assert_eq!(image.user, Some((10, "1001:0".to_owned())));
        let wanted = [("a", 7, "x \"y\""), ("b", 9, "c d"), ("e", 9, "f"), ("g", 16, "h i")];
        assert_eq!(texts(&image.labels), wanted);
    }

    #[test]
    fn nothing_is_inherited_from_scratch() {
        assert_eq!(image("FROM scratch\nCOPY a /\n"), Image::default());
        assert_eq!(image(""), Image::default());
    }
}
