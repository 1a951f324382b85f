//! Checks that a program can run as the only file of an image.
//!
//! A program that was linked against shared libraries, or built for other machines, makes a perfectly good image whose
//! container ends at once with "no such file or directory" or "exec format error". That is better said here.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::spec::Platform;

/// `PT_INTERP`: the program header that names the dynamic loader.
const INTERPRETER: u32 = 3;
/// Programs have about ten program headers.
const HEADERS_LIMIT: u16 = 256;

/// Checks that a file is a statically linked Linux program for a platform.
pub fn check_program(path: &Path, platform: &Platform) -> Result<(), Error> {
    if check_machine(path, platform)?.dynamic {
        return Err(Error::Refused {
            what: path.display().to_string(),
            reason: "it needs shared libraries, which the image does not have; link it statically (RUSTFLAGS=\"-C \
             target-feature=+crt-static\" with --target, or a musl target, or CGO_ENABLED=0 for Go), or put the \
             libraries in with `olmkit image build directory`, or use a --base that has them"
                .to_owned(),
        });
    }
    Ok(())
}

/// Checks that a file is a Linux program for a platform.
fn check_machine(path: &Path, platform: &Platform) -> Result<Elf, Error> {
    let refused = |reason: String| Error::Refused {
        what: path.display().to_string(),
        reason,
    };
    let mut file = olmkit::limits::open(path).map_err(Error::file("read", path))?;
    let elf = Elf::read(&mut file)
        .map_err(Error::file("read", path))?
        .ok_or_else(|| refused("it is not a Linux program (ELF)".to_owned()))?;
    if platform.os != "linux" || elf.architecture() != Some(platform.architecture.as_str()) {
        return Err(refused(format!(
            "it is built for linux/{}, the image is for {platform}; name one file for each platform, as in \
             target/{{arch}}/program",
            elf.architecture().unwrap_or("another machine"),
        )));
    }
    Ok(elf)
}

/// A path with `{os}` and `{arch}` replaced by those of a platform.
#[must_use]
pub fn path_for(path: &Path, platform: &Platform) -> PathBuf {
    let text = path.to_string_lossy();
    PathBuf::from(
        text.replace("{os}", &platform.os)
            .replace("{arch}", &platform.architecture),
    )
}

/// The program for a platform, which must be able to run as the only file of an image. See [`path_for`].
///
/// # Errors
/// Those of [`check_program`].
pub fn program_for(path: &Path, platform: &Platform) -> Result<PathBuf, Error> {
    let path = path_for(path, platform);
    check_program(&path, platform)?;
    Ok(path)
}

/// As [`program_for`], for a base image, which may have the shared libraries.
///
/// # Errors
/// The file is not a Linux program for the platform.
pub fn program_on_base(path: &Path, platform: &Platform) -> Result<PathBuf, Error> {
    let path = path_for(path, platform);
    check_machine(&path, platform)?;
    Ok(path)
}

/// The header of an ELF file.
struct Elf {
    machine: u16,
    little_endian: bool,
    dynamic: bool,
}

impl Elf {
    /// `None`: the file is something else.
    fn read(file: &mut File) -> std::io::Result<Option<Self>> {
        let mut head = Vec::new();
        file.take(64).read_to_end(&mut head)?;
        let wide = match head.get(..5) {
            Some([0x7f, b'E', b'L', b'F', class]) => *class == 2,
            _ => return Ok(None),
        };
        let little_endian = head.get(5) == Some(&1);
        let number = |bytes: &[u8], at: usize, length: usize| {
            let field = bytes.get(at..at + length).unwrap_or_default();
            let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
            if little_endian {
                field.iter().rev().fold(0, add)
            } else {
                field.iter().fold(0, add)
            }
        };
        let half = |at: usize| u16::try_from(number(&head, at, 2)).unwrap_or_default();
        // Offset, size and count of the program headers.
        let (offset, size, count) = if wide {
            (number(&head, 32, 8), half(54), half(56))
        } else {
            (number(&head, 28, 4), half(42), half(44))
        };
        let mut headers = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.take(u64::from(size) * u64::from(count.min(HEADERS_LIMIT)))
            .read_to_end(&mut headers)?;
        let dynamic = headers
            .chunks(usize::from(size).max(4))
            .any(|header| number(header, 0, 4) == u64::from(INTERPRETER));
        Ok(Some(Self {
            machine: half(18),
            little_endian,
            dynamic,
        }))
    }

    /// In Go's spelling, which images use.
    fn architecture(&self) -> Option<&'static str> {
        Some(match self.machine {
            3 => "386",
            21 if self.little_endian => "ppc64le",
            21 => "ppc64",
            22 => "s390x",
            40 => "arm",
            62 => "amd64",
            183 => "arm64",
            243 => "riscv64",
            258 => "loong64",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 64-bit little-endian program without content: one program header of the given kind.
    fn program(machine: u16, header: u32) -> tempfile::NamedTempFile {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&header.to_le_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    fn verdict(file: &tempfile::NamedTempFile, platform: &str) -> String {
        match check_program(file.path(), &platform.parse().unwrap()) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn programs_that_cannot_run_alone_are_refused() {
        const LOAD: u32 = 1;
        assert_eq!(verdict(&program(62, LOAD), "linux/amd64"), "");
        assert_eq!(verdict(&program(183, LOAD), "linux/arm64/v8"), "");
        let other = verdict(&program(62, LOAD), "linux/arm64");
        assert!(
            other.contains("built for linux/amd64, the image is for linux/arm64"),
            "{other}"
        );
        let dynamic = verdict(&program(62, INTERPRETER), "linux/amd64");
        assert!(dynamic.contains("needs shared libraries"), "{dynamic}");
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert!(verdict(&script, "linux/amd64").contains("not a Linux program"));
    }
}
