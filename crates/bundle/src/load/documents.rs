//! Selects the document of a manifest file.
//!
//! The reference tools read the first document of a file to learn its kind. For a ClusterServiceVersion or a
//! CustomResourceDefinition they then rewind the file and read again, but through a reader that has already buffered up
//! to 4096 bytes. For a file of one document the result is the same. For a file of several documents the second reading
//! gets the rest of those bytes, followed by the file from its start, up to the next separator.

/// Size of the reader's buffer.
const READ_AHEAD: usize = 4096;
const SEPARATOR: &[u8] = b"---";

/// Why a file has no first document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Nothing but the end of the file.
    #[error("EOF")]
    Empty,
    /// Text after a separator.
    #[error("invalid Yaml document separator: {text}")]
    Separator {
        /// The text.
        text: String,
        /// The line it is on, counted from 1.
        line: usize,
    },
}

/// The relevant documents of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The first document.
    pub first: Vec<u8>,
    /// The document for typed decoding, if it is another one.
    pub typed: Option<Vec<u8>>,
    /// Line on which a second document begins, counted from 1.
    pub second_line: Option<usize>,
}

/// Splits a file.
///
/// # Errors
/// For an empty file, and for content after a separator.
pub fn split(bytes: &[u8]) -> Result<Documents, DocumentError> {
    let mut reader = LineReader {
        bytes,
        read: 0,
        consumed: 0,
        line: 0,
    };
    let first = read_document(&mut reader)?;
    let rest = reader.bytes.get(reader.consumed..reader.read).unwrap_or_default();
    if reader.consumed == bytes.len() {
        return Ok(Documents {
            first,
            typed: None,
            second_line: None,
        });
    }
    let second_line = Some(reader.line);
    let again: Vec<u8> = rest.iter().chain(bytes).copied().collect();
    let mut reader = LineReader {
        bytes: &again,
        read: again.len(),
        consumed: 0,
        line: 0,
    };
    let typed = read_document(&mut reader)?;
    Ok(Documents {
        first,
        typed: Some(typed),
        second_line,
    })
}

/// Reads up to the next separator. A separator at the very start belongs to the document.
fn read_document(reader: &mut LineReader<'_>) -> Result<Vec<u8>, DocumentError> {
    let mut document = Vec::new();
    loop {
        let Some((line, terminated)) = reader.line() else {
            return if document.is_empty() {
                Err(DocumentError::Empty)
            } else {
                Ok(document)
            };
        };
        if let Some(after) = line.strip_prefix(SEPARATOR) {
            let text = String::from_utf8_lossy(after).trim().to_string();
            if !text.is_empty() && !text.starts_with('#') {
                return Err(DocumentError::Separator {
                    text,
                    line: reader.line,
                });
            }
            if !document.is_empty() {
                return Ok(document);
            }
        }
        document.extend_from_slice(line);
        document.push(b'\n');
        if !terminated {
            return Ok(document);
        }
    }
}

/// Reads lines and keeps count of how far the reader of the reference tools would have read ahead.
struct LineReader<'a> {
    bytes: &'a [u8],
    read: usize,
    consumed: usize,
    line: usize,
}

impl<'a> LineReader<'a> {
    /// The next line without its end, and whether it had one.
    fn line(&mut self) -> Option<(&'a [u8], bool)> {
        let rest = self.bytes.get(self.consumed..)?;
        if rest.is_empty() {
            return None;
        }
        self.line += 1;
        let length = memchr::memchr(b'\n', rest);
        let end = self.consumed + length.map_or(rest.len(), |length| length + 1);
        // The reader moves its content to the front of its buffer and fills the rest. A line that fills the whole
        // buffer is returned in pieces.
        let mut held = self.consumed;
        while self.read < end {
            if self.read - held >= READ_AHEAD {
                held = self.read;
            }
            self.read = (held + READ_AHEAD).min(self.bytes.len());
        }
        self.consumed = end;
        let line = rest.get(..length.unwrap_or(rest.len()))?;
        Some((line.strip_suffix(b"\r").unwrap_or(line), length.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn one_document_is_read_twice_alike() {
        let documents = split(b"---\na: 1\r\nb: 2").expect("documents");
        assert_eq!(text(&documents.first), "---\na: 1\nb: 2\n");
        assert_eq!(documents.typed, None);
    }

    #[test]
    fn the_typed_reading_of_two_documents() {
        let plain = split(b"a: 1\n---\nb: 2\n").expect("documents");
        assert_eq!(text(&plain.typed.expect("second reading")), "b: 2\na: 1\n");
        let leading = split(b"---\na: 1\n---\nb: 2\n").expect("documents");
        assert_eq!(text(&leading.typed.expect("second reading")), "b: 2\n");
        assert_eq!(leading.second_line, Some(3));
    }

    #[test]
    fn beyond_the_read_ahead_the_second_reading_starts_over() {
        let mut file = format!("a: {}\n---\n", "x".repeat(5000)).into_bytes();
        file.extend(b"b: 2\n");
        let documents = split(&file).expect("documents");
        assert!(text(&documents.typed.expect("second reading")).starts_with("b: 2\na: x"));
    }

    #[test]
    fn text_behind_a_separator_is_refused() {
        assert_eq!(split(b""), Err(DocumentError::Empty));
        let error = split(b"a: |\n-----BEGIN\n").expect_err("separator");
        assert_eq!(
            error,
            DocumentError::Separator {
                text: "--BEGIN".to_string(),
                line: 2
            }
        );
        assert_eq!(text(&split(b"---\n---\na: 1\n").expect("documents").first), "---\n");
    }
}
