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

    /// A page of 64 KiB whose 10,000 cells are all the same: one record of 32 KiB.
    #[test]
    fn cells_that_overlap_do_not_make_a_record_of_each() {
        const PAGE: usize = 65_536;
        let mut file = DATABASE.get(..100).unwrap_or_default().to_vec();
        file.splice(16..18, [0, 1]);
        file.resize(PAGE, 0);
        // A leaf of a table, at byte 100; its cells follow the head of 8 bytes.
        let cells: u16 = 10_000;
        file.splice(100..105, [vec![0x0d, 0, 0], cells.to_be_bytes().to_vec()].concat());
        let cell = 108 + 2 * usize::from(cells);
        let pointer = u16::try_from(cell).expect("it is in the page").to_be_bytes();
        file.splice(108..cell, pointer.repeat(usize::from(cells)));
        // 32,768 bytes, of row 1.
        file.splice(cell..cell + 4, [0x82, 0x80, 0x00, 1]);
        let problem = packages(&file).expect_err("it is forged");
        assert!(problem.contains("larger than the file"), "{problem}");
    }
}
