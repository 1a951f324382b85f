//! The RPM packages of an image.

use super::sqlite::{Problem, blobs};

/// Tags of a header.
mod tag {
    pub(super) const NAME: usize = 1000;
    pub(super) const VERSION: usize = 1001;
    pub(super) const RELEASE: usize = 1002;
    pub(super) const INSTALL_TIME: usize = 1008;
    pub(super) const VENDOR: usize = 1011;
    pub(super) const ARCHITECTURE: usize = 1022;
    pub(super) const FILE_FLAGS: usize = 1037;
    pub(super) const FOLDER_NUMBERS: usize = 1116;
    pub(super) const BASE_NAMES: usize = 1117;
    pub(super) const FOLDERS: usize = 1118;
}

/// Maximum bytes for the paths of all files: a path is joined from parts that an untrusted header may repeat.
const MOST_BYTES: usize = 64 << 20;

/// A package as the RPM database describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its release, such as `1.el9`.
    pub release: String,
    /// Its architecture.
    pub architecture: String,
    /// Its vendor.
    pub vendor: String,
    /// Installation time, in seconds since 1970.
    pub installed: u32,
    /// Its files with their flags. None from [`packages`].
    pub files: Vec<(String, u32)>,
}

impl Package {
    /// Name, version, release and architecture.
    pub(super) fn id(&self) -> String {
        [&*self.name, &*self.version, &*self.release, &*self.architecture].join("-")
    }

    /// Returns true if a package with that id differs in nothing but the architecture. As preflight splits it, a name or version with a dash is
    /// never the same.
    pub(super) fn differs_in_architecture_only(&self, id: &str) -> bool {
        let mut parts = id.split('-');
        let mut is = |text: &str| parts.next() == Some(text);
        is(&self.name) && is(&self.version) && is(&self.release) && !is(&self.architecture)
    }
}

/// The names of the packages in an RPM database (`rpmdb.sqlite`).
///
/// # Errors
/// The file is not such a database. The error is the reason.
pub fn packages(database: &[u8]) -> Result<Vec<String>, String> {
    let names = read(database, |header| {
        header.text(tag::NAME).ok_or("the header of a package has no name")
    });
    names.map_err(|problem| format!("the RPM database cannot be read: {problem}"))
}

/// The packages in an RPM database (`rpmdb.sqlite`), with their files.
///
/// # Errors
/// The file is not such a database. The error is the reason.
pub fn packages_with_files(database: &[u8]) -> Result<Vec<Package>, String> {
    let mut left = MOST_BYTES;
    let packages = read(database, |header| {
        let text = |tag| header.text(tag).unwrap_or_default();
        let files = header.files(&mut left)?;
        Ok(Package {
            name: header.text(tag::NAME).ok_or("the header of a package has no name")?,
            version: text(tag::VERSION),
            release: text(tag::RELEASE),
            architecture: text(tag::ARCHITECTURE),
            vendor: text(tag::VENDOR),
            installed: header.numbers(tag::INSTALL_TIME).first().copied().unwrap_or_default(),
            files,
        })
    });
    packages.map_err(|problem| format!("the RPM database cannot be read: {problem}"))
}

fn read<T>(database: &[u8], one: impl FnMut(Header<'_>) -> Result<T, Problem>) -> Result<Vec<T>, Problem> {
    let headers = blobs(database, "Packages")?;
    headers.iter().map(|header| Header(header)).map(one).collect()
}

/// A header: a count of entries, the size of their data, the entries, the data.
#[derive(Clone, Copy)]
struct Header<'h>(&'h [u8]);

impl<'h> Header<'h> {
    /// The data of a tag from its start to the end of the header, and the count of its values.
    fn data(self, tag: usize) -> Option<(&'h [u8], usize)> {
        let number = |at: usize| usize::try_from(u32_at(self.0, at)?).ok();
        let entries = number(0)?.min(self.0.len() / 16);
        let data = self.0.get(8 + 16 * entries..)?;
        // Tag, type, offset, count.
        let entry = (0..entries).find(|entry| number(8 + 16 * entry) == Some(tag))?;
        Some((data.get(number(8 + 16 * entry + 8)?..)?, number(8 + 16 * entry + 12)?))
    }

    fn text(self, tag: usize) -> Option<String> {
        let (data, _) = self.data(tag)?;
        let end = data.iter().position(|byte| *byte == 0)?;
        String::from_utf8(data.get(..end)?.to_vec()).ok()
    }

    /// The strings of a tag, each of which ends with a zero byte.
    fn texts(self, tag: usize) -> Vec<&'h str> {
        let Some((data, count)) = self.data(tag) else {
            return Vec::new();
        };
        let texts = data.split(|byte| *byte == 0).take(count);
        texts
            .map(|text| std::str::from_utf8(text).unwrap_or_default())
            .collect()
    }

    fn numbers(self, tag: usize) -> Vec<u32> {
        let Some((data, count)) = self.data(tag) else {
            return Vec::new();
        };
        (0..count).map_while(|at| u32_at(data, at.checked_mul(4)?)).collect()
    }

    /// Its files with their flags. `left` bounds the bytes of their names.
    fn files(self, left: &mut usize) -> Result<Vec<(String, u32)>, Problem> {
        let (folders, names) = (self.texts(tag::FOLDERS), self.texts(tag::BASE_NAMES));
        let (numbers, flags) = (self.numbers(tag::FOLDER_NUMBERS), self.numbers(tag::FILE_FLAGS));
        let files = names.iter().zip(numbers).enumerate().map(|(at, (name, number))| {
            let directory = usize::try_from(number).ok().and_then(|number| folders.get(number));
            let directory = directory.ok_or("a file of a package is in no directory")?;
            *left = left
                .checked_sub(directory.len() + name.len() + 1)
                .ok_or("its packages have too many files")?;
            Ok((format!("{directory}{name}"), flags.get(at).copied().unwrap_or_default()))
        });
        files.collect()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by SQLite itself: pages of 512 bytes, so that the 12 headers of 900 bytes need inner pages and overflow
    /// pages.
    static DATABASE: &[u8] = include_bytes!("packages.sqlite");

    #[test]
    fn names_are_read_from_a_database() {
        let names = packages(DATABASE).expect("SQLite wrote it");
        let wanted: Vec<String> = (0..12).map(|number| format!("package-{number}")).collect();
        assert_eq!(names, wanted);
    }

    /// A header with a string, a number and the files of a package.
    fn header() -> Vec<u8> {
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .flat_map(|text| [text.as_bytes(), &[0]].concat())
                .collect::<Vec<u8>>()
        };
        let numbers = |numbers: &[u32]| {
            numbers
                .iter()
                .flat_map(|number| number.to_be_bytes())
                .collect::<Vec<u8>>()
        };
        let values = [
            (tag::NAME, 6, 1, texts(&["bash"])),
            (tag::VERSION, 6, 1, texts(&["5.1"])),
            (tag::RELEASE, 6, 1, texts(&["1.el9"])),
            (tag::INSTALL_TIME, 4, 1, numbers(&[1_700_000_000])),
            (tag::VENDOR, 6, 1, texts(&["Red Hat, Inc."])),
            (tag::ARCHITECTURE, 6, 1, texts(&["x86_64"])),
            (tag::FILE_FLAGS, 4, 2, numbers(&[0, 2])),
            (tag::FOLDER_NUMBERS, 4, 2, numbers(&[0, 1])),
            (tag::BASE_NAMES, 8, 2, texts(&["bash", "README"])),
            (tag::FOLDERS, 8, 2, texts(&["/usr/bin/", "/usr/share/doc/bash/"])),
        ];
        let (mut entries, mut data) = (Vec::new(), Vec::new());
        for (tag, kind, count, value) in &values {
            for number in [*tag, *kind, data.len(), *count] {
                entries.extend(u32::try_from(number).expect("it is small").to_be_bytes());
            }
            data.extend(value);
        }
        [
            numbers(&[10, u32::try_from(data.len()).expect("it is small")]),
            entries,
            data,
        ]
        .concat()
    }

    #[test]
    fn a_package_has_its_files_with_their_flags() {
        let bytes = header();
        let header = Header(&bytes);
        let files = header.files(&mut 1000).expect("it is sound");
        assert_eq!(
            files,
            [
                ("/usr/bin/bash".to_owned(), 0),
                ("/usr/share/doc/bash/README".to_owned(), 2)
            ]
        );
        assert_eq!(header.text(tag::VENDOR).as_deref(), Some("Red Hat, Inc."));
        assert_eq!(header.numbers(tag::INSTALL_TIME), [1_700_000_000]);
        assert!(header.files(&mut 30).is_err());
        for size in 0..bytes.len() {
            // Truncated input must not panic.
            let cut = Header(bytes.get(..size).unwrap_or_default());
            let _ = (
                cut.files(&mut 1000),
                cut.text(tag::VENDOR),
                cut.numbers(tag::INSTALL_TIME),
            );
        }
        let without = packages_with_files(DATABASE).expect("SQLite wrote it");
        assert_eq!(without.len(), 12);
        assert!(without.iter().all(|package| package.files.is_empty()));
    }

    #[test]
    fn ids_are_compared_as_preflight_splits_them() {
        let package = |name: &str, architecture: &str| Package {
            name: name.to_owned(),
            version: "1".to_owned(),
            release: "2".to_owned(),
            architecture: architecture.to_owned(),
            ..Package::default()
        };
        let differs = |name: &str| package(name, "i686").differs_in_architecture_only(&package(name, "x86_64").id());
        assert!(differs("glibc"));
        assert!(!differs("glibc-common"));
        assert!(!package("glibc", "i686").differs_in_architecture_only("glibc-1-2-i686"));
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
            // On any input, it neither panics nor runs forever, and finds no more packages than there are.
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
        // A leaf of a table, at byte 100. Its cells follow the head of 8 bytes.
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
