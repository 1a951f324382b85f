//! Output size of `compress/gzip`.
//!
//! Tools print the compressed size of a bundle. An equally good compressor gives other numbers, so this one follows the
//! matches and codes of Go's `compress/flate` at its default level (its `deflate.go` and `huffman_bit_writer.go`), and
//! counts bits instead of writing them.

mod code;

use code::Block;

/// Maximum distance of a match.
const WINDOW: usize = 1 << 15;
/// The shortest and the longest match.
const LEAST: usize = 4;
const MOST: usize = 258;
/// A match of this length is used immediately. The search also skips the next position after one of this length.
const NICE: usize = 128;
const LAZY: usize = 16;
/// Earlier places with the same hash that are tried.
const CHAIN: usize = 128;
/// A match of minimum length must be nearer than this.
const NEAR: usize = 4096;
const HASH_BITS: u32 = 17;
const HASH_FACTOR: u32 = 0x1e35_a7bd;
/// The header and the end of a gzip file.
const FRAME: u64 = 10 + 8;

/// The number of bytes that Go's `compress/gzip` writes at its default level for data that is written in one call.
pub fn size(data: &[u8]) -> u64 {
    let mut deflate = Deflate {
        data,
        heads: vec![0; 1 << HASH_BITS],
        previous: vec![0; WINDOW],
        base: 0,
        block: Block::default(),
        block_start: 0,
        bits: 0,
    };
    deflate.run();
    deflate.store(0);
    FRAME + deflate.bits.div_ceil(8)
}

struct Deflate<'a> {
    data: &'a [u8],
    /// The last position of each hash, and for each position in the window the previous one with the same hash. All are
    /// one greater: 0 means none.
    heads: Vec<usize>,
    previous: Vec<usize>,
    /// Start of the buffer, whose size is twice the window. Go drops everything before it.
    base: usize,
    block: Block,
    block_start: usize,
    bits: u64,
}

impl Deflate<'_> {
    fn run(&mut self) {
        let (mut index, mut length, mut offset) = (0, LEAST - 1, 0);
        // True if the byte before `index` is neither a literal yet nor in a match.
        let mut is_pending = false;
        let mut chain = 0;
        loop {
            let end = self.data.len().min(self.base + 2 * WINDOW);
            let lookahead = end - index;
            if lookahead < LEAST + MOST && end < self.data.len() {
                self.base += WINDOW;
                continue;
            }
            if lookahead == 0 {
                break;
            }
            let is_hashed = |place: usize| place + LEAST - 1 < end;
            if is_hashed(index) {
                chain = self.insert(index);
            }
            let (before, its_offset) = (length, offset);
            (length, offset) = (LEAST - 1, 0);
            if lookahead > before && before < LAZY {
                (length, offset) = self.longest(index, chain, lookahead).unwrap_or((length, offset));
            }
            if before >= LEAST && length <= before {
                self.block.copy(before, its_offset);
                let next = index + before - 1;
                for place in (index + 1..next).filter(|place| is_hashed(*place)) {
                    self.insert(place);
                }
                index = next;
                is_pending = false;
                length = LEAST - 1;
                self.end_full_block(index);
            } else {
                if is_pending {
                    self.literal(index - 1);
                    self.end_full_block(index);
                }
                index += 1;
                is_pending = true;
            }
        }
        if is_pending {
            self.literal(index - 1);
        }
        if !self.block.is_empty() {
            self.end_block(index);
        }
    }

    /// Records the position of a hash; returns the previous one.
    fn insert(&mut self, place: usize) -> usize {
        let Some((bytes, _)) = self.data.get(place..).and_then(<[u8]>::split_first_chunk::<LEAST>) else {
            return 0;
        };
        let hash = u32::from_be_bytes(*bytes).wrapping_mul(HASH_FACTOR) >> (32 - HASH_BITS);
        let Some(head) = self.heads.get_mut(hash as usize) else {
            return 0;
        };
        let before = std::mem::replace(head, place + 1);
        if let Some(previous) = self.previous.get_mut(place % WINDOW) {
            *previous = before;
        }
        before
    }

    /// The longest match for a position, as length and distance.
    fn longest(&self, place: usize, chain: usize, lookahead: usize) -> Option<(usize, usize)> {
        let here = self.data.get(place..place + MOST.min(lookahead))?;
        let nice = NICE.min(here.len());
        let (mut length, mut found) = (LEAST - 1, None);
        let mut next = chain;
        for _ in 0..CHAIN {
            let at = next.checked_sub(1)?;
            if at < self.base || at + WINDOW < place {
                break;
            }
            if self.data.get(at + length) == here.get(length) {
                let there = self.data.get(at..).unwrap_or_default();
                let same = here.iter().zip(there).take_while(|(one, other)| one == other).count();
                if same > length && (same > LEAST || place - at <= NEAR) {
                    length = same;
                    found = Some((same, place - at));
                    if same >= nice {
                        break;
                    }
                }
            }
            if at + WINDOW == place {
                break;
            }
            match self.previous.get(at % WINDOW) {
                Some(previous) if *previous > 0 => next = *previous,
                _ => break,
            }
        }
        found
    }

    fn literal(&mut self, place: usize) {
        if let Some(byte) = self.data.get(place) {
            self.block.literal(*byte);
        }
    }

    fn end_full_block(&mut self, index: usize) {
        if self.block.is_full() {
            self.end_block(index);
        }
    }

    fn end_block(&mut self, index: usize) {
        // Go can store a block uncompressed only while its buffer has all of it.
        let stored = (self.block_start >= self.base).then_some(index - self.block_start);
        self.block_start = index;
        match std::mem::take(&mut self.block).bits(stored) {
            code::Size::Coded(bits) => self.bits += bits,
            code::Size::Stored(bytes) => self.store(bytes),
        }
    }

    /// An uncompressed block.
    fn store(&mut self, bytes: usize) {
        self.bits = (self.bits + 3).next_multiple_of(8) + 32 + 8 * bytes as u64;
    }
}
