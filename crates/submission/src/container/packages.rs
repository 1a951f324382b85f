//! The RPM packages of an image.

use super::sqlite::{Problem, blobs};

/// The tag of a package's name in its header.
const NAME: usize = 1000;

/// The names of the packages in an RPM database (`rpmdb.sqlite`).
///
/// # Errors
/// The file is not such a database; the text says why.
pub fn packages(database: &[u8]) -> Result<Vec<String>, String> {
    let names = || -> Result<Vec<String>, Problem> {
        let mut names = Vec::new();
        for header in blobs(database, "Packages")? {
            names.push(name(&header).ok_or("the header of a package has no name")?);
        }
        Ok(names)
    };
    names().map_err(|problem| format!("the RPM database cannot be read: {problem}"))
}

/// The name in a header: a count of entries, the size of their data, the entries, the data.
fn name(header: &[u8]) -> Option<String> {
    let number = |at: usize| {
        let bytes: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(bytes)).ok()
    };
    let entries = number(0)?.min(header.len() / 16);
    let data = header.get(8 + 16 * entries..)?;
    // Tag, type, offset, count.
    let entry = (0..entries).find(|entry| number(8 + 16 * entry) == Some(NAME))?;
    let text = data.get(number(8 + 16 * entry + 8)?..)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    String::from_utf8(text.get(..end)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by SQLite itself: pages of 512 bytes, so that the 12 headers of 900 bytes need inner pages and go on in others.
    static DATABASE: &[u8] = include_bytes!("packages.sqlite");

    #[test]
    fn names_are_read_from_a_database() {
        let names = packages(DATABASE).expect("SQLite wrote it");
        let wanted: Vec<String> = (0..12).map(|number| format!("package-{number}")).collect();
        assert_eq!(names, wanted);
    }

    #[test]
    fn broken_databases_are_errors() {
        assert!(packages(b"x").is_err_and(|error| error.contains("not a SQLite file")));
        for size in (0..DATABASE.len()).step_by(97) {
            let cut = DATABASE.get(..size).unwrap_or_default();
            assert!(packages(cut).is_err(), "{size}");
        }
        for at in (0..DATABASE.len()).step_by(31) {
            let mut broken = DATABASE.to_vec();
            if let Some(byte) = broken.get_mut(at) {
                *byte ^= 0xff;
            }
            // Whatever it says, it neither panics nor runs for ever, and finds no more than there is.
            assert!(packages(&broken).map_or(0, |names| names.len()) < 2_000);
        }
    }
}
