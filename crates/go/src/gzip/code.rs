//! The Huffman codes of one block, as far as they determine its size.

/// Symbols that a block may have before it ends.
const MOST_SYMBOLS: u32 = 1 << 14;
/// Bytes that a stored block may have.
const MOST_STORED: usize = 65_535;
const LITERALS: usize = 286;
const OFFSETS: usize = 30;
/// The symbol at the end of each block.
const END: usize = 256;
/// Where the symbols for lengths begin.
const LENGTHS: usize = 257;

/// The minimum length minus 3 of each symbol, and its extra bits.
const LENGTH_SYMBOLS: [(usize, u64); 29] = [
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 1),
    (10, 1),
    (12, 1),
    (14, 1),
    (16, 2),
    (20, 2),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 3),
    (56, 3),
    (64, 4),
    (80, 4),
    (96, 4),
    (112, 4),
    (128, 5),
    (160, 5),
    (192, 5),
    (224, 5),
    (255, 0),
];

/// The order of the code lengths for the length codes; unused trailing ones are omitted.
const CODE_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Frequency of each symbol in a block.
pub(super) struct Block {
    literals: [u64; LITERALS],
    offsets: [u64; OFFSETS],
    /// The bits that follow symbols.
    extra: u64,
    symbols: u32,
}

/// Size of a block.
pub(super) enum Size {
    /// Bits.
    Coded(u64),
    /// Bytes stored uncompressed.
    Stored(usize),
}

impl Default for Block {
    fn default() -> Self {
        Self {
            literals: [0; LITERALS],
            offsets: [0; OFFSETS],
            extra: 0,
            symbols: 0,
        }
    }
}

impl Block {
    pub(super) fn is_empty(&self) -> bool {
        self.symbols == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.symbols == MOST_SYMBOLS
    }

    pub(super) fn literal(&mut self, byte: u8) {
        self.symbols += 1;
        count(&mut self.literals, usize::from(byte));
    }

    pub(super) fn copy(&mut self, length: usize, distance: usize) {
        self.symbols += 1;
        let symbol = LENGTH_SYMBOLS.partition_point(|(least, _)| *least <= length - 3) - 1;
        count(&mut self.literals, LENGTHS + symbol);
        self.extra += LENGTH_SYMBOLS.get(symbol).map_or(0, |(_, extra)| *extra);
        // Two symbols for each number of bits: 1, 2, 3, 4, 5-6, 7-8, 9-12, 13-16, …
        let (symbol, extra) = match distance - 1 {
            near @ 0..4 => (near, 0),
            far => {
                let extra = far.ilog2() - 1;
                (2 * extra as usize + (far >> extra), u64::from(extra))
            }
        };
        count(&mut self.offsets, symbol);
        self.extra += extra;
    }

    /// The smallest form of the block; `stored` is the number of its bytes if they are at hand.
    pub(super) fn bits(mut self, stored: Option<usize>) -> Size {
        count(&mut self.literals, END);
        // A code for offsets must have a symbol. It is not written, but it is part of what Go compares.
        let has_offsets = self.offsets.iter().any(|count| *count > 0);
        if !has_offsets {
            count(&mut self.offsets, 0);
        }
        let of_literals = lengths(&self.literals, 15);
        let of_offsets = lengths(&self.offsets, 15);
        let dynamic =
            header(&of_literals, &of_offsets) + bits(&self.literals, &of_literals) + bits(&self.offsets, &of_offsets);
        let fixed = 3 + bits(&self.literals, &fixed_literals()) + bits(&self.offsets, &[5; OFFSETS]);
        let (coded, unused) = if dynamic < fixed { (dynamic, 1) } else { (fixed, 5) };
        match stored.filter(|bytes| *bytes <= MOST_STORED) {
            Some(bytes) if (bytes as u64 + 5) * 8 < coded + self.extra => Size::Stored(bytes),
            _ if has_offsets => Size::Coded(coded + self.extra),
            _ => Size::Coded(coded + self.extra - unused),
        }
    }
}

fn count(counts: &mut [u64], symbol: usize) {
    if let Some(count) = counts.get_mut(symbol) {
        *count += 1;
    }
}

/// The bits of all symbols.
fn bits(counts: &[u64], lengths: &[u8]) -> u64 {
    counts
        .iter()
        .zip(lengths)
        .map(|(count, length)| count * u64::from(*length))
        .sum()
}

/// The lengths of the code that is known without a header.
fn fixed_literals() -> Vec<u8> {
    let length = |symbol| match symbol {
        144..256 => 9,
        256..280 => 7,
        _ => 8,
    };
    (0..LITERALS).map(length).collect()
}

/// Bits of the header with a block's codes: the lengths as runs, encoded by a separate code.
fn header(literals: &[u8], offsets: &[u8]) -> u64 {
    let used = |lengths: &[u8]| {
        lengths
            .iter()
            .rposition(|length| *length > 0)
            .map_or(0, |last| last + 1)
    };
    let all = literals
        .iter()
        .take(used(literals))
        .chain(offsets.iter().take(used(offsets)));
    let all: Vec<u8> = all.copied().collect();
    let mut counts = [0; CODE_ORDER.len()];
    for run in all.chunk_by(|one, other| one == other) {
        let mut left = run.len();
        let length = run.first().map_or(0, |length| usize::from(*length));
        if length > 0 {
            count(&mut counts, length);
            left -= 1;
            while left >= 3 {
                count(&mut counts, 16);
                left -= left.min(6);
            }
        } else {
            while left >= 11 {
                count(&mut counts, 18);
                left -= left.min(138);
            }
            if left >= 3 {
                count(&mut counts, 17);
                left = 0;
            }
        }
        (0..left).for_each(|_| count(&mut counts, length));
    }
    let of = |symbol: usize| counts.get(symbol).copied().unwrap_or_default();
    let last = CODE_ORDER.iter().rposition(|symbol| of(*symbol) > 0).unwrap_or(0);
    let written = (last as u64 + 1).max(4);
    let code = bits(&counts, &lengths(&counts, 7));
    3 + 5 + 5 + 4 + 3 * written + code + of(16) * 2 + of(17) * 3 + of(18) * 7
}

/// The code length of each symbol, at most `most` bits: package-merge, in which a pair sorts before a symbol of the
/// same frequency.
fn lengths(counts: &[u64], most: usize) -> Vec<u8> {
    let mut leaves: Vec<(u64, usize)> = counts
        .iter()
        .copied()
        .zip(0..)
        .filter(|(count, _)| *count > 0)
        .collect();
    let mut lengths = vec![0; counts.len()];
    let mut add = |symbol: usize| {
        if let Some(length) = lengths.get_mut(symbol) {
            *length += 1;
        }
    };
    if leaves.len() <= 2 {
        leaves.iter().for_each(|(_, symbol)| add(*symbol));
        return lengths;
    }
    leaves.sort_unstable();
    // For each level the candidates in order: the weight, and whether it is a symbol.
    let mut levels: Vec<Vec<(u64, bool)>> = Vec::new();
    for _ in 0..most.min(leaves.len() - 1) {
        let below = levels.last().map(Vec::as_slice).unwrap_or_default();
        let pairs = below
            .chunks_exact(2)
            .map(|pair| (pair.iter().map(|(weight, _)| weight).sum(), false));
        let mut level: Vec<(u64, bool)> = pairs.chain(leaves.iter().map(|(count, _)| (*count, true))).collect();
        level.sort_unstable();
        levels.push(level);
    }
    let mut taken = 2 * leaves.len() - 2;
    for level in levels.iter().rev() {
        let symbols = level.iter().take(taken).filter(|(_, is_symbol)| *is_symbol).count();
        leaves.iter().take(symbols).for_each(|(_, symbol)| add(*symbol));
        taken = 2 * (taken - symbols);
    }
    lengths
}
