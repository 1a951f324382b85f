//! Limits for untrusted images.

/// Bounds for reading an image. The defaults let every image pass that a node could run in practice, and keep memory
/// well below 256 MB.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Entries of all layers together.
    pub entries: usize,
    /// Bytes of all entry names and link targets together; with `entries`, what bounds memory.
    pub name_bytes: usize,
    /// Bytes of one file that is written or kept.
    pub file_bytes: u64,
    /// Bytes that are written to disk.
    pub written_bytes: u64,
    /// Bytes of one layer after decompression.
    pub layer_bytes: u64,
    /// How many times larger than itself a layer may become once it has passed [`Limits::RATIO_FREE`] bytes.
    pub ratio: u64,
    /// Bytes of one entry's name.
    pub path_bytes: usize,
    /// Components of one entry's name.
    pub depth: usize,
    /// Symbolic links followed for one name.
    pub links: usize,
}

impl Limits {
    /// Below this size a layer may be compressed as well as it likes.
    pub const RATIO_FREE: u64 = 64 << 20;
    /// The same for all layers of an image together.
    pub const IMAGE_RATIO_FREE: u64 = 1 << 30;

    /// Bytes that a layer of this size may have after decompression.
    pub(crate) fn unpacked_layer(&self, size: u64) -> u64 {
        let by_ratio = size.saturating_mul(self.ratio).max(Self::RATIO_FREE);
        by_ratio.min(self.layer_bytes)
    }

    /// Bytes that all layers of an image may have together after decompression, if they have this size before.
    pub(crate) fn unpacked_image(&self, size: u64) -> u64 {
        size.saturating_mul(self.ratio).max(Self::IMAGE_RATIO_FREE)
    }

    /// For an archive of reports that is kept in memory.
    pub const REPORTS: Self = Self {
        entries: 10_000,
        name_bytes: 4 << 20,
        file_bytes: 64 << 20,
        written_bytes: 64 << 20,
        layer_bytes: 128 << 20,
        ratio: 200,
        path_bytes: 4096,
        depth: 32,
        links: 40,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 400_000,
            name_bytes: 48 << 20,
            file_bytes: 4 << 30,
            written_bytes: 16 << 30,
            layer_bytes: 16 << 30,
            ratio: 200,
            path_bytes: 4096,
            depth: 128,
            links: 40,
        }
    }
}
