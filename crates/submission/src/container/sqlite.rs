//! Reads one table of a SQLite file, in which images store their packages. The file is untrusted, so every page is
//! visited at most once, and the records together are at most as large as the file.

/// Why a file cannot be read.
pub(super) type Problem = &'static str;

struct Database<'a> {
    bytes: &'a [u8],
    page_size: usize,
    /// The size of a page's data area.
    usable: usize,
    /// Pages that may still be visited.
    left: usize,
    /// Bytes of records that may still be read: cells of an untrusted page may overlap.
    room: usize,
}

/// The last column of each row of a table, if it is a blob.
pub(super) fn blobs(bytes: &[u8], table: &str) -> Result<Vec<Vec<u8>>, Problem> {
    if !bytes.starts_with(b"SQLite format 3\0") {
        return Err("it is not a SQLite file");
    }
    let page_size = match number(bytes, 16, 2)? {
        1 => 65_536,
        size if size >= 512 => size,
        _ => return Err("its page size is below 512"),
    };
    let usable = page_size.checked_sub(number(bytes, 20, 1)?);
    let mut database = Database {
        bytes,
        page_size,
        usable: usable.filter(|usable| *usable >= 480).ok_or("its pages hold nothing")?,
        left: bytes.len() / page_size + 1,
        room: bytes.len(),
    };
    let mut root = None;
    for record in database.records(1)? {
        // type, name, tbl_name, rootpage, sql
        let columns = columns(&record)?;
        let value = |at: usize| columns.get(at).map(|(_, value)| *value);
        if value(0) == Some(b"table") && value(1) == Some(table.as_bytes()) {
            let page = value(3).unwrap_or_default();
            root = Some(number(page, 0, page.len())?);
        }
    }
    let mut found = Vec::new();
    for record in database.records(root.ok_or("the table is missing")?)? {
        if let Some((12.., value)) = columns(&record)?.last() {
            found.push(value.to_vec());
        }
    }
    Ok(found)
}

impl<'a> Database<'a> {
    /// The records of a table, in the order of their keys.
    fn records(&mut self, root: usize) -> Result<Vec<Vec<u8>>, Problem> {
        let mut found = Vec::new();
        let mut waiting = vec![root];
        while let Some(page) = waiting.pop() {
            let bytes = self.page(page)?;
            let head = if page == 1 { 100 } else { 0 };
            let cells = number(bytes, head + 3, 2)?;
            match number(bytes, head, 1)? {
                0x05 => {
                    let mut inner = Vec::new();
                    for cell in 0..cells {
                        inner.push(number(bytes, number(bytes, head + 12 + 2 * cell, 2)?, 4)?);
                    }
                    inner.push(number(bytes, head + 8, 4)?);
                    if inner.len() > self.left {
                        return Err("a page occurs twice");
                    }
                    waiting.extend(inner.into_iter().rev());
                }
                0x0d => {
                    for cell in 0..cells {
                        found.push(self.payload(bytes, number(bytes, head + 8 + 2 * cell, 2)?)?);
                    }
                }
                _ => return Err("a page is not of a table"),
            }
        }
        Ok(found)
    }

    fn page(&mut self, page: usize) -> Result<&'a [u8], Problem> {
        self.left = self.left.checked_sub(1).ok_or("a page occurs twice")?;
        let start = page.checked_sub(1).and_then(|page| page.checked_mul(self.page_size));
        let start = start.ok_or("a page is missing")?;
        let end = start.checked_add(self.page_size).ok_or("a page is missing")?;
        self.bytes.get(start..end).ok_or("a page is missing")
    }

    /// The content of a cell, including its overflow pages.
    fn payload(&mut self, page: &[u8], at: usize) -> Result<Vec<u8>, Problem> {
        let (size, at) = varint(page, at)?;
        let (_, at) = varint(page, at)?;
        let size = usize::try_from(size).map_err(|_| "a record is too large")?;
        self.room = self
            .room
            .checked_sub(size)
            .ok_or("its records are larger than the file")?;
        let (most, least) = (self.usable - 35, (self.usable - 12) * 32 / 255 - 23);
        let here = match least + size.saturating_sub(least) % (self.usable - 4) {
            _ if size <= most => size,
            part if part <= most => part,
            _ => least,
        };
        let mut payload = page.get(at..at + here).ok_or("a record is cut off")?.to_vec();
        let mut next = if here < size { number(page, at + here, 4)? } else { 0 };
        while payload.len() < size {
            let page = self.page(next)?;
            next = number(page, 0, 4)?;
            let part = (size - payload.len()).min(self.usable - 4);
            payload.extend(page.get(4..4 + part).ok_or("a record is cut off")?);
        }
        Ok(payload)
    }
}

/// The columns of a record: type and bytes.
fn columns(record: &[u8]) -> Result<Vec<(u64, &[u8])>, Problem> {
    let (head, mut at) = varint(record, 0)?;
    let head = usize::try_from(head).map_err(|_| "a record is broken")?;
    let mut start = head;
    let mut found = Vec::new();
    while at < head {
        let (kind, next) = varint(record, at)?;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return Err("a record is broken"),
            _ => (kind - 12) / 2,
        };
        let size = usize::try_from(size).map_err(|_| "a record is broken")?;
        let end = start.checked_add(size).ok_or("a record is broken")?;
        found.push((kind, record.get(start..end).ok_or("a record is cut off")?));
        (start, at) = (end, next);
    }
    Ok(found)
}

/// A number of some bytes, the highest first.
fn number(bytes: &[u8], at: usize, size: usize) -> Result<usize, Problem> {
    let end = at
        .checked_add(size)
        .filter(|_| size <= 8)
        .ok_or("a number is cut off")?;
    let bytes = bytes.get(at..end).ok_or("a number is cut off")?;
    Ok(bytes.iter().fold(0, |all, byte| (all << 8) | usize::from(*byte)))
}

/// A number of up to nine bytes, and where it ends.
fn varint(bytes: &[u8], at: usize) -> Result<(u64, usize), Problem> {
    let mut value = 0_u64;
    for count in 0..9 {
        let byte = *bytes.get(at + count).ok_or("a number is cut off")?;
        if count == 8 {
            return Ok(((value << 8) | u64::from(byte), at + 9));
        }
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok((value, at + count + 1));
        }
    }
    Err("a number is cut off")
}
