//! A file of YAML.

use olmkit_yaml::Position;

use super::{EMPTY, Node, Raise, RaiseKind, Value, View, reader};
use crate::files::Files;

/// One document of a file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The file, relative to the repository.
    pub(crate) file: String,
    /// The value.
    pub(crate) root: Node,
}

impl Document {
    /// An empty document that is not in the file: `{}`.
    pub(crate) fn empty(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            root: EMPTY.clone(),
        }
    }

    /// The whole document.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            file: &self.file,
            node: &self.root,
            at: self.root.start,
        }
    }
}

/// Reads the one document of a file. A file `x.yaml` may also be `x.yml`, and vice versa.
pub(crate) fn read_document(files: &dyn Files, path: &str) -> Result<Document, Raise> {
    let path = find(files, path)?;
    let text = text(files, &path)?;
    let mut documents = reader::parse(&text).map_err(|raise| raise.in_file(&path))?;
    if documents.len() > 1 {
        let start = documents
            .get(1)
            .map_or(Position { line: 1, column: 1 }, |node| node.start);
        return Err(Raise::other(format!("{path} contains multiple yaml documents"))
            .in_file(&path)
            .at(start));
    }
    Ok(Document {
        file: path,
        root: documents.pop().unwrap_or_else(|| Node::new(Value::None)),
    })
}

/// Reads all documents of a file.
pub(crate) fn read_stream(files: &dyn Files, path: &str) -> Result<Vec<Document>, Raise> {
    let path = find(files, path)?;
    let text = text(files, &path)?;
    parse_stream(&path, &text)
}

/// The documents of a stream.
pub(crate) fn parse_stream(path: &str, text: &str) -> Result<Vec<Document>, Raise> {
    let documents = reader::parse(text).map_err(|raise| raise.in_file(path))?;
    let of = |root| Document {
        file: path.to_owned(),
        root,
    };
    Ok(documents.into_iter().map(of).collect())
}

/// The file, or the one with the other ending.
fn find(files: &dyn Files, path: &str) -> Result<String, Raise> {
    if files.is_file(path) {
        return Ok(path.to_owned());
    }
    let (directory, name) = path
        .rsplit_once('/')
        .map_or(("", path), |(directory, name)| (directory, name));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    for other in ["yaml", "yml"].into_iter().filter(|other| *other != ending) {
        let other = if directory.is_empty() {
            format!("{stem}.{other}")
        } else {
            format!("{directory}/{stem}.{other}")
        };
        if files.is_file(&other) {
            return Ok(other);
        }
    }
    Err(Raise::new(RaiseKind::FileNotFound, format!("{path} does not exist")).in_file(path))
}

/// The content of a file.
pub(crate) fn bytes(files: &dyn Files, path: &str) -> Result<Vec<u8>, Raise> {
    let bytes = files.read(path);
    bytes.map_err(|error| Raise::other(format!("{path} cannot be read: {error}")).in_file(path))
}

fn text(files: &dyn Files, path: &str) -> Result<String, Raise> {
    let text = String::from_utf8(bytes(files, path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        Raise::value(format!(
            "'utf-8' codec can't decode byte {byte:#04x} in position {at}: invalid start byte"
        ))
        .in_file(path)
    })?;
    Ok(text)
}
