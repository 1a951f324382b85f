//! Reads tar archives from untrusted sources: names, sizes and sparse maps of the ustar, GNU and PAX formats.
//!
//! The tar crate reads extension records into memory at the size that the archive claims, or leaves all extensions to
//! its caller, and then frames the archive by sizes that PAX records replace. Here every record is bounded. The rules
//! are those of Go's archive/tar, which the other container tools use.

use std::io::{self, Read};

use crate::error::Error;

const BLOCK: usize = 512;
/// Extension records are a few hundred bytes. No name or attribute needs more.
const EXTENSION_LIMIT: u64 = 1 << 20;
/// Pieces of data of one sparse file.
const PIECES_LIMIT: usize = 1 << 16;

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The name as written.
    pub path: Vec<u8>,
    /// The target of a link as written.
    pub link: Vec<u8>,
    pub kind: MemberKind,
    /// The permission bits.
    pub mode: u32,
    /// Size of the content in bytes, with the holes of a sparse file.
    pub size: u64,
    /// True if it has file capabilities (`security.capability`).
    pub has_capabilities: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberKind {
    File,
    HardLink,
    Symlink,
    Directory,
    /// A device, a pipe, or something that has no meaning in an image.
    Special,
}

/// A piece of data of a sparse file. Between the pieces are zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    offset: u64,
    length: u64,
}

/// The values of extension records for the next member.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    /// Names in GNU records. They replace those in PAX records.
    long_path: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    size: Option<u64>,
    capabilities: bool,
    sparse: SparseRecords,
}

/// The PAX records of GNU sparse files, versions 0.0, 0.1 and 1.0.
#[derive(Default)]
struct SparseRecords {
    version: Option<(Vec<u8>, Vec<u8>)>,
    name: Option<Vec<u8>>,
    size: Option<u64>,
    real_size: Option<u64>,
    /// Offsets and lengths in turn.
    map: Option<Vec<u64>>,
}

/// Calls `visit` for each member with its content. `what` names the archive in errors.
pub(crate) fn for_each(
    stream: &mut dyn Read,
    what: &str,
    mut visit: impl FnMut(Member, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let broken = |error: io::Error| Error::Refused {
        what: what.to_owned(),
        reason: error.to_string(),
    };
    let mut extensions = Extensions::default();
    while let Some(header) = read_header(stream).map_err(broken)? {
        let kind = header.kind();
        if matches!(kind, b'L' | b'K' | b'x' | b'g') {
            let record = read_record(stream, &header).map_err(broken)?;
            extensions.add(kind, record).map_err(broken)?;
            continue;
        }
        let (member, data, pieces) = describe(stream, &header, std::mem::take(&mut extensions)).map_err(broken)?;
        let mut content = Content {
            stream: &mut *stream,
            data,
            size: member.size,
            pieces: pieces.map(Vec::into_iter),
            piece: None,
            position: 0,
        };
        visit(member, &mut content)?;
        let rest = content.data;
        skip(stream, rest.saturating_add(padding(data))).map_err(broken)?;
    }
    Ok(())
}

/// The content of a member. Reads zeros for the holes of a sparse file.
struct Content<'s> {
    stream: &'s mut dyn Read,
    /// Bytes of data that are left in the archive.
    data: u64,
    /// Bytes of the content in all.
    size: u64,
    /// The pieces that were not begun, for a sparse file.
    pieces: Option<std::vec::IntoIter<Piece>>,
    piece: Option<Piece>,
    position: u64,
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(pieces) = &mut self.pieces else {
            return self.read_data(buffer, self.data);
        };
        if self.position >= self.size || buffer.is_empty() {
            return Ok(0);
        }
        if self
            .piece
            .is_none_or(|piece| self.position >= piece.offset + piece.length)
        {
            self.piece = pieces.find(|piece| piece.length > 0);
        }
        let (in_hole, end) = match self.piece {
            Some(piece) if self.position < piece.offset => (true, piece.offset),
            Some(piece) => (false, piece.offset + piece.length),
            None => (true, self.size),
        };
        let most = end - self.position;
        let count = if in_hole {
            let count = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
            buffer.iter_mut().take(count).for_each(|byte| *byte = 0);
            count
        } else {
            let count = self.read_data(buffer, most.min(self.data))?;
            if count == 0 {
                return Err(invalid("a sparse file has less data than its map"));
            }
            count
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl Content<'_> {
    fn read_data(&mut self, buffer: &mut [u8], most: u64) -> io::Result<usize> {
        if most == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let count = self.stream.take(most).read(buffer)?;
        if count == 0 {
            return Err(invalid("the archive ends within a member"));
        }
        self.data -= count as u64;
        Ok(count)
    }
}

struct Header([u8; BLOCK]);

impl Header {
    fn field(&self, from: usize, length: usize) -> &[u8] {
        self.0.get(from..from + length).unwrap_or_default()
    }

    fn kind(&self) -> u8 {
        self.0.get(156).copied().unwrap_or_default()
    }

    fn size(&self) -> io::Result<u64> {
        number(self.field(124, 12))
    }

    fn is_gnu(&self) -> bool {
        self.field(257, 8) == b"ustar  \0"
    }

    fn name(&self) -> Vec<u8> {
        let name = text(self.field(0, 100));
        if self.field(257, 6) != b"ustar\0" {
            return name.to_vec();
        }
        // The star format has two times at the end of the prefix.
        let length = if self.field(508, 4) == b"tar\0" { 131 } else { 155 };
        match text(self.field(345, length)) {
            b"" => name.to_vec(),
            prefix => [prefix, b"/", name].concat(),
        }
    }

    fn has_right_checksum(&self) -> bool {
        let Ok(expected) = number(self.field(148, 8)) else {
            return false;
        };
        let bytes = || {
            let numbered = self.0.iter().enumerate();
            numbered.map(|(index, byte)| if (148..156).contains(&index) { b' ' } else { *byte })
        };
        let unsigned: u64 = bytes().map(u64::from).sum();
        // Old writers added signed bytes.
        let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
        expected == unsigned || i64::try_from(expected) == Ok(signed)
    }
}

/// The next header. `None` at the end of the archive.
fn read_header(stream: &mut dyn Read) -> io::Result<Option<Header>> {
    let mut block = [0; BLOCK];
    let count = fill(stream, &mut block)?;
    if count == 0 || count == BLOCK && block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let header = Header(block);
    if count < BLOCK || !header.has_right_checksum() {
        return Err(invalid("it is not a tar archive, or it is damaged"));
    }
    Ok(Some(header))
}

fn fill(stream: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// The content of an extension record.
fn read_record(stream: &mut dyn Read, header: &Header) -> io::Result<Vec<u8>> {
    let size = header.size()?;
    if size > EXTENSION_LIMIT {
        return Err(invalid(&format!("an extension record claims {size} bytes")));
    }
    let mut record = vec![0; usize::try_from(size).unwrap_or_default()];
    if fill(stream, &mut record)? < record.len() {
        return Err(invalid("the archive ends within an extension record"));
    }
    skip(stream, padding(size))?;
    Ok(record)
}

impl Extensions {
    fn add(&mut self, kind: u8, record: Vec<u8>) -> io::Result<()> {
        match kind {
            b'L' => self.long_path = Some(text(&record).to_vec()),
            b'K' => self.long_link = Some(text(&record).to_vec()),
            b'x' => {
                for (key, value) in pax_records(&record)? {
                    self.add_pax(key, value)?;
                }
            }
            // Records for all members. Nothing that they may say changes names, sizes or content.
            _ => {}
        }
        Ok(())
    }

    fn add_pax(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let given = || (!value.is_empty()).then(|| value.to_vec());
        let sparse = &mut self.sparse;
        match key {
            b"path" => self.path = given(),
            b"linkpath" => self.link = given(),
            b"size" => self.size = given().map(|_| decimal(value)).transpose()?,
            b"SCHILY.xattr.security.capability" => self.capabilities = true,
            b"GNU.sparse.major" => sparse.version.get_or_insert_default().0 = value.to_vec(),
            b"GNU.sparse.minor" => sparse.version.get_or_insert_default().1 = value.to_vec(),
            b"GNU.sparse.name" => sparse.name = given(),
            b"GNU.sparse.size" => sparse.size = Some(decimal(value)?),
            b"GNU.sparse.realsize" => sparse.real_size = Some(decimal(value)?),
            b"GNU.sparse.map" => {
                let numbers = value.split(|byte| *byte == b',').filter(|part| !part.is_empty());
                sparse.map = Some(numbers.map(decimal).collect::<io::Result<_>>()?);
            }
            // Version 0.0 repeats these two for each piece.
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                let map = sparse.map.get_or_insert_default();
                if map.len() % 2 != usize::from(key == b"GNU.sparse.numbytes") {
                    return Err(invalid("the map of a sparse file is invalid"));
                }
                map.push(decimal(value)?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl SparseRecords {
    /// True if the data starts with the map, false if the records have it. `None` without a sparse file.
    fn map_is_in_data(&self) -> Option<bool> {
        match &self.version {
            Some((major, minor)) => match (major.as_slice(), minor.as_slice()) {
                (b"1", b"0") => Some(true),
                (b"0", b"0" | b"1") => Some(false),
                // Other tools take unknown versions for plain files too.
                _ => None,
            },
            None => self.map.is_some().then_some(false),
        }
    }
}

/// The member that a header and the extensions before it describe, its bytes in the archive, and its pieces if it is sparse.
fn describe(
    stream: &mut dyn Read,
    header: &Header,
    extensions: Extensions,
) -> io::Result<(Member, u64, Option<Vec<Piece>>)> {
    let name = header.name();
    let kind = match header.kind() {
        // In the oldest format a slash at the end is all that marks a directory.
        0 if name.ends_with(b"/") => MemberKind::Directory,
        0 | b'0' | b'7' | b'S' => MemberKind::File,
        b'1' => MemberKind::HardLink,
        b'2' => MemberKind::Symlink,
        b'5' => MemberKind::Directory,
        _ => MemberKind::Special,
    };
    // Links, devices and directories have no content, whatever their size field contains.
    let has_content = kind == MemberKind::File || !matches!(header.kind(), b'1'..=b'6');
    let mut data = match extensions.size {
        _ if !has_content => 0,
        Some(size) => size,
        None => header.size()?,
    };
    let mut member = Member {
        path: extensions.long_path.or(extensions.path).unwrap_or(name),
        link: extensions
            .long_link
            .or(extensions.link)
            .unwrap_or_else(|| text(header.field(157, 100)).to_vec()),
        kind,
        mode: u32::try_from(number(header.field(100, 8)).unwrap_or_default()).unwrap_or_default(),
        size: data,
        has_capabilities: extensions.capabilities,
    };
    if kind != MemberKind::File {
        return Ok((member, data, None));
    }
    let sparse = extensions.sparse;
    let map = if header.kind() == b'S' {
        if !header.is_gnu() {
            return Err(invalid("a sparse file is not in the GNU format"));
        }
        member.size = number(header.field(483, 12))?;
        read_old_map(stream, header)?
    } else if let Some(in_data) = sparse.map_is_in_data() {
        member.path = sparse.name.unwrap_or(member.path);
        member.size = sparse.size.or(sparse.real_size).unwrap_or(data);
        if in_data {
            let (map, read) = read_map(stream, data)?;
            data -= read;
            map
        } else {
            sparse.map.unwrap_or_default()
        }
    } else {
        return Ok((member, data, None));
    };
    let pieces = pieces(&map, member.size)?;
    Ok((member, data, Some(pieces)))
}

/// The map of the GNU format before PAX: in the header, and in blocks that follow it.
fn read_old_map(stream: &mut dyn Read, header: &Header) -> io::Result<Vec<u64>> {
    let mut map = Vec::new();
    let mut block = header.0;
    let (mut from, mut count, mut more) = (386, 4, 482);
    loop {
        for entry in 0..count {
            let field = |at: usize| block.get(at..at + 12).unwrap_or_default();
            let at = from + entry * 24;
            if field(at).first().is_none_or(|byte| *byte == 0) {
                break;
            }
            map.extend([number(field(at))?, number(field(at + 12))?]);
        }
        if block.get(more).is_none_or(|flag| *flag == 0) {
            return Ok(map);
        }
        if map.len() > PIECES_LIMIT * 2 || fill(stream, &mut block)? < BLOCK {
            return Err(invalid("the map of a sparse file is invalid"));
        }
        (from, count, more) = (0, 21, 504);
    }
}

/// The map of version 1.0: decimal numbers on lines before the data, filled up to whole blocks. Also its bytes.
fn read_map(stream: &mut dyn Read, data: u64) -> io::Result<(Vec<u64>, u64)> {
    let wrong = || invalid("the map of a sparse file is invalid");
    let mut numbers: Vec<u64> = Vec::new();
    let mut line = Vec::new();
    let mut read = 0;
    loop {
        let mut block = [0; BLOCK];
        if read + BLOCK as u64 > data || fill(stream, &mut block)? < BLOCK {
            return Err(wrong());
        }
        read += BLOCK as u64;
        for byte in block {
            if byte != b'\n' {
                line.push(byte);
                if line.len() > 20 {
                    return Err(wrong());
                }
                continue;
            }
            numbers.push(decimal(&line)?);
            line.clear();
            // The first number is how many pieces follow.
            let pieces = numbers.first().copied().unwrap_or_default();
            if pieces > PIECES_LIMIT as u64 {
                return Err(wrong());
            }
            if numbers.len() as u64 == 1 + 2 * pieces {
                return Ok((numbers.split_off(1), read));
            }
        }
    }
}

/// The pieces of a map, which must be in order and within the file.
fn pieces(map: &[u64], size: u64) -> io::Result<Vec<Piece>> {
    let wrong = || invalid("the map of a sparse file is invalid");
    let mut end = 0;
    let mut pieces = Vec::new();
    for pair in map.chunks(2) {
        let [offset, length] = *pair else { return Err(wrong()) };
        let piece_end = offset.checked_add(length).ok_or_else(wrong)?;
        if offset < end || piece_end > size || pieces.len() >= PIECES_LIMIT {
            return Err(wrong());
        }
        end = piece_end;
        pieces.push(Piece { offset, length });
    }
    Ok(pieces)
}

/// The records of a PAX header: `LENGTH KEY=VALUE` and a line end each.
fn pax_records(bytes: &[u8]) -> io::Result<Vec<(&[u8], &[u8])>> {
    let wrong = || invalid("a PAX record is invalid");
    let mut records = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let length = rest.get(..space).map(decimal).ok_or_else(wrong)??;
        let length = usize::try_from(length).map_err(|_| wrong())?;
        let record = rest.get(space + 1..length).ok_or_else(wrong)?;
        let record = record.strip_suffix(b"\n").ok_or_else(wrong)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        records.push((
            record.get(..equals).unwrap_or_default(),
            record.get(equals + 1..).unwrap_or_default(),
        ));
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(records)
}

fn decimal(text: &[u8]) -> io::Result<u64> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| invalid("an extension record has an invalid number"))
}

/// A number of a header: octal digits, or base 256 if the first bit is set, as for sizes of 8 GiB and more.
fn number(field: &[u8]) -> io::Result<u64> {
    let wrong = || invalid("a header has an invalid number");
    match field.split_first() {
        // Bit 6 is the sign.
        Some((first, _)) if first & 0xc0 == 0xc0 => Err(wrong()),
        Some((first, others)) if first & 0x80 != 0 => others
            .iter()
            .try_fold(u64::from(first & 0x7f), |sum, byte| {
                Some(sum.checked_mul(256)? | u64::from(*byte))
            })
            .ok_or_else(wrong),
        _ => {
            let is_filler = |byte: &u8| matches!(byte, 0 | b' ');
            let start = field.iter().position(|byte| !is_filler(byte)).unwrap_or(field.len());
            let digits = field.get(start..).unwrap_or_default();
            let end = digits.iter().position(is_filler).unwrap_or(digits.len());
            let digits = digits.get(..end).unwrap_or_default();
            let digit = |sum: u64, byte: &u8| match byte {
                b'0'..=b'7' => sum.checked_mul(8).map(|sum| sum | u64::from(byte - b'0')),
                _ => None,
            };
            digits.iter().try_fold(0, digit).ok_or_else(wrong)
        }
    }
}

/// The bytes before the first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn padding(size: u64) -> u64 {
    (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64
}

fn skip(stream: &mut dyn Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut stream.take(bytes), &mut io::sink())?;
    // The last member may lack its padding.
    if skipped < bytes && bytes - skipped >= BLOCK as u64 {
        return Err(invalid("the archive ends within a member"));
    }
    Ok(())
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(kind: u8, name: &[u8], size: u64, change: impl FnOnce(&mut [u8; BLOCK])) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        let bytes = header.as_mut_bytes();
        bytes[156] = kind;
        bytes[..name.len()].copy_from_slice(name);
        change(bytes);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    fn padded(mut header: Vec<u8>, content: &[u8]) -> Vec<u8> {
        header.extend_from_slice(content);
        header.resize(header.len().next_multiple_of(BLOCK), 0);
        header
    }

    fn pax(records: &[(&str, &str)]) -> Vec<u8> {
        let mut text = String::new();
        for (key, value) in records {
            let bare = key.len() + value.len() + 3;
            let length = (bare..)
                .find(|length| length - length.to_string().len() == bare)
                .unwrap();
            text += &format!("{length} {key}={value}\n");
        }
        padded(block(b'x', b"pax", text.len() as u64, |_| {}), text.as_bytes())
    }

    fn read(parts: &[Vec<u8>]) -> Result<Vec<(Member, Vec<u8>)>, Error> {
        let mut members = Vec::new();
        let bytes = parts.concat();
        for_each(&mut bytes.as_slice(), "test", |member, content| {
            let mut bytes = Vec::new();
            content
                .read_to_end(&mut bytes)
                .map_err(Error::file("read", std::path::Path::new("test")))?;
            members.push((member, bytes));
            Ok(())
        })?;
        Ok(members)
    }

    #[test]
    fn sizes_of_pax_records_replace_those_of_headers() {
        let last = padded(block(b'0', b"last", 1, |_| {}), b"z");
        for size in [0, 3, 1 << 40] {
            let parts = [
                pax(&[("path", "long\nname"), ("size", "700")]),
                padded(block(b'0', b"short", size, |_| {}), &[7; 700]),
                last.clone(),
            ];
            let members = read(&parts).unwrap();
            assert_eq!(members[0].0.path, b"long\nname");
            assert_eq!((members[0].0.size, members[0].1.as_slice()), (700, [7; 700].as_slice()));
            assert_eq!(members[1].1, b"z");
        }
    }

    #[test]
    fn gnu_names_replace_those_of_pax_records_in_any_order() {
        let long = |kind: u8, name: &[u8]| padded(block(kind, b"././@LongLink", name.len() as u64, |_| {}), name);
        let records = pax(&[("path", "pax"), ("linkpath", "paxlink")]);
        let (path, link) = (long(b'L', b"gnu\0"), long(b'K', b"gnulink\0"));
        let last = block(b'2', b"short", 0, |_| {});
        for parts in [[path.clone(), link.clone(), records.clone()], [records, path, link]] {
            let members = read(&[parts.concat(), last.clone()]).unwrap();
            assert_eq!(
                (members[0].0.path.as_slice(), members[0].0.link.as_slice()),
                (&b"gnu"[..], &b"gnulink"[..])
            );
        }
    }

    #[test]
    fn large_numbers_are_read_in_both_spellings() {
        assert_eq!(number(b"77777777777\0").unwrap(), (8 << 30) - 1);
        assert_eq!(number(b"  17 \0").unwrap(), 15);
        assert_eq!(number(b"\0\0").unwrap(), 0);
        let large = block(b'0', b"a", 9 << 30, |_| {});
        assert_eq!(number(&large[124..136]).unwrap(), 9 << 30);
        assert!(
            number(b"8").is_err()
                && number(&[0xff; 12]).is_err()
                && number(&[0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err()
        );
    }

    #[test]
    fn size_fields_of_links_and_directories_are_ignored() {
        let parts = [
            block(b'1', b"hard", 900, |_| {}),
            block(b'5', b"directory/", 900, |_| {}),
            padded(block(0, b"a", 1, |_| {}), b"z"),
            block(0, b"old/", 0, |_| {}),
        ];
        let kinds: Vec<MemberKind> = read(&parts).unwrap().iter().map(|(member, _)| member.kind).collect();
        let expected = [
            MemberKind::HardLink,
            MemberKind::Directory,
            MemberKind::File,
            MemberKind::Directory,
        ];
        assert_eq!(kinds, expected);
    }

    /// Ten bytes: two of data at 3, one at 8.
    const SPARSE: &[u8] = &[0, 0, 0, b'a', b'b', 0, 0, 0, b'c', 0];

    #[test]
    fn holes_of_all_sparse_formats_are_zeros() {
        let last = padded(block(b'0', b"last", 1, |_| {}), b"z");
        let map: String = ["2", "3", "2", "8", "1"].map(|number| format!("{number}\n")).concat();
        let mut with_map = map.into_bytes();
        with_map.resize(BLOCK, 0);
        with_map.extend(b"abc");
        let old = block(b'S', b"old", 3, |bytes| {
            let octal = |number: u64| format!("{number:011o}\0").into_bytes();
            for (at, number) in [(386, 3), (398, 2), (410, 8), (422, 1), (483, 10)] {
                bytes[at..at + 12].copy_from_slice(&octal(number));
            }
        });
        let formats: [Vec<u8>; 4] = [
            [
                pax(&[
                    ("GNU.sparse.size", "10"),
                    ("GNU.sparse.offset", "3"),
                    ("GNU.sparse.numbytes", "2"),
                    ("GNU.sparse.offset", "8"),
                    ("GNU.sparse.numbytes", "1"),
                ]),
                padded(block(b'0', b"real", 3, |_| {}), b"abc"),
            ]
            .concat(),
            [
                pax(&[
                    ("GNU.sparse.size", "10"),
                    ("GNU.sparse.map", "3,2,8,1"),
                    ("GNU.sparse.name", "real"),
                ]),
                padded(block(b'0', b"GNUSparseFile.0/real", 3, |_| {}), b"abc"),
            ]
            .concat(),
            [
                pax(&[
                    ("GNU.sparse.major", "1"),
                    ("GNU.sparse.minor", "0"),
                    ("GNU.sparse.name", "real"),
                    ("GNU.sparse.realsize", "10"),
                ]),
                padded(
                    block(b'0', b"GNUSparseFile.0/real", with_map.len() as u64, |_| {}),
                    &with_map,
                ),
            ]
            .concat(),
            padded(old, b"abc"),
        ];
        for format in formats {
            let members = read(&[format, last.clone()]).unwrap();
            assert_eq!(
                (members[0].0.size, members[0].1.as_slice()),
                (10, SPARSE),
                "{:?}",
                members[0]
            );
            assert_eq!(members[1].1, b"z");
        }
    }

    #[test]
    fn hostile_archives_are_refused() {
        let file = |name: &[u8]| padded(block(b'0', name, 3, |_| {}), b"abc");
        let map = |map: &str| [pax(&[("GNU.sparse.size", "10"), ("GNU.sparse.map", map)]), file(b"a")];
        for parts in [
            &map("8,1,3,2")[..],
            &map("3,2,9,2"),
            &map("18446744073709551615,2"),
            &map("3"),
            &map("0,9"),
            &[block(b'x', b"pax", 1 << 40, |_| {})],
            &[padded(block(b'x', b"pax", 5, |_| {}), b"99 a=")],
            &[block(b'0', b"a", 1 << 40, |_| {})],
            &[vec![7; BLOCK]],
            &[vec![7; 100]],
        ] {
            assert!(read(parts).is_err(), "{parts:?}");
        }
    }
}
