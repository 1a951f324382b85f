//! Decompression by what the bytes are: media types and file names are often wrong.

use std::io::{self, BufRead, Read};

use bzip2::{Decompress, Status};
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BZIP2: &[u8] = b"BZh";
/// After a digit comes a block, or the end of the stream.
const BZIP2_BLOCKS: [&[u8]; 2] = [
    &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59],
    &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90],
];
const XZ: &[u8] = &[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];
/// No container tool reads this format.
const LZ4: &[u8] = &[0x04, 0x22, 0x4d, 0x18];
/// Memory of the xz decoder in KiB. `xz -9` needs half of it.
const XZ_MEMORY: u32 = 129 << 10;

/// The compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
    /// The OCI image specification does not name it. The other container tools read it.
    Bzip2,
    /// As [`Self::Bzip2`].
    Xz,
}

impl Compression {
    /// Bytes that show the compression.
    pub(crate) const START: u64 = 16;

    /// The compression of a stream that starts with some bytes.
    pub(crate) fn detect(start: &[u8]) -> io::Result<Self> {
        if start.starts_with(GZIP) {
            return Ok(Self::Gzip);
        }
        // Tables of contents may come before the data, in frames to be skipped: 0x184d2a50 to 0x184d2a5f.
        let is_skippable = matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        if start.starts_with(ZSTD) || is_skippable {
            return Ok(Self::Zstd);
        }
        if start.starts_with(LZ4) {
            let problem = "it is compressed with lz4; only gzip, Zstandard, bzip2 and xz are supported";
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        if start.starts_with(XZ) {
            return Ok(Self::Xz);
        }
        // A tar archive starts with a name, and a name may start with the same letters.
        let block = start.strip_prefix(BZIP2).and_then(|rest| rest.split_first());
        let is_bzip2 = block.is_some_and(|(level, block)| {
            matches!(level, b'1'..=b'9') && BZIP2_BLOCKS.iter().any(|magic| block.starts_with(magic))
        });
        Ok(if is_bzip2 { Self::Bzip2 } else { Self::None })
    }
}

/// A stream without its compression. After an error it returns the error again: some decoders would never end.
pub(crate) struct Decoder<R: Read> {
    format: Format<R>,
    failed: Option<(io::ErrorKind, String)>,
}

enum Format<R: Read> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<R>>),
    Zstd(Box<ZstdDecoder<R>>),
    Bzip2(Box<Bzip2Decoder<R>>),
    Xz(Box<XzReader<R>>),
}

impl<R: BufRead> Decoder<R> {
    pub(crate) fn new(mut stream: R) -> io::Result<Self> {
        let format = match Compression::detect(stream.fill_buf()?)? {
            Compression::None => Format::Plain(stream),
            Compression::Gzip => Format::Gzip(Box::new(MultiGzDecoder::new(stream))),
            Compression::Zstd => Format::Zstd(Box::new(ZstdDecoder::new(stream))),
            Compression::Bzip2 => Format::Bzip2(Box::new(Bzip2Decoder::new(stream))),
            Compression::Xz => Format::Xz(Box::new(XzReader::new_mem_limit(stream, true, XZ_MEMORY))),
        };
        Ok(Self { format, failed: None })
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.format, Format::Plain(_))
    }

    pub(crate) fn into_inner(self) -> R {
        match self.format {
            Format::Plain(stream) => stream,
            Format::Gzip(decoder) => decoder.into_inner(),
            Format::Zstd(decoder) => decoder.stream,
            Format::Bzip2(decoder) => decoder.stream,
            Format::Xz(decoder) => decoder.into_inner(),
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((kind, message)) = &self.failed {
            return Err(io::Error::new(*kind, message.clone()));
        }
        let result = match &mut self.format {
            Format::Plain(stream) => stream.read(buffer),
            Format::Gzip(decoder) => decoder.read(buffer),
            Format::Zstd(decoder) => decoder.read(buffer),
            Format::Bzip2(decoder) => decoder.read(buffer),
            Format::Xz(decoder) => decoder.read(buffer),
        };
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.failed = Some((error.kind(), error.to_string()));
        }
        result
    }
}

/// Decodes the frames of a Zstandard stream one after another. Its memory is bounded by the largest window that ruzstd
/// accepts, 128 MiB.
pub(crate) struct ZstdDecoder<R> {
    stream: R,
    frame: FrameDecoder,
    /// True within a frame.
    begun: bool,
}

impl<R: BufRead> ZstdDecoder<R> {
    fn new(stream: R) -> Self {
        Self {
            stream,
            frame: FrameDecoder::new(),
            begun: false,
        }
    }

    /// Begins the next frame with content. False at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.stream.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.stream) {
                Ok(()) => {
                    self.begun = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.stream).take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdDecoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.begun && !self.begin()? {
                return Ok(0);
            }
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                let one = ruzstd::decoding::BlockDecodingStrategy::UptoBlocks(1);
                self.frame
                    .decode_blocks(&mut self.stream, one)
                    .map_err(io::Error::other)?;
            }
            match self.frame.read(buffer)? {
                0 => self.begun = false,
                count => return Ok(count),
            }
        }
    }
}

/// Decodes the streams of a bzip2 file one after another. Programs that compress in parallel write a stream for each 100 kB or more.
pub(crate) struct Bzip2Decoder<R> {
    stream: R,
    state: Decompress,
    /// True after the end of a stream.
    ended: bool,
    streams: u64,
    produced: u64,
}

impl<R: BufRead> Bzip2Decoder<R> {
    /// Streams of any size. An empty one has 14 bytes, and its decoder clears 64 kB of memory.
    const FREE_STREAMS: u64 = 1000;
    /// Bytes that each further stream must have produced on average.
    const STREAM_BYTES: u64 = 64 << 10;

    fn new(stream: R) -> Self {
        Self {
            stream,
            state: Decompress::new(false),
            ended: false,
            streams: 1,
            produced: 0,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.streams += 1;
        if self.streams > Self::FREE_STREAMS + self.produced / Self::STREAM_BYTES {
            return Err(io::Error::other(format!(
                "it has {} bzip2 streams for {} bytes, refusing a possible decompression bomb",
                self.streams, self.produced
            )));
        }
        self.state = Decompress::new(false);
        self.ended = false;
        Ok(())
    }
}

impl<R: BufRead> Read for Bzip2Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let is_done = self.stream.fill_buf()?.is_empty();
            if self.ended {
                if is_done {
                    return Ok(0);
                }
                self.begin()?;
            }
            let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(self.stream.fill_buf()?, buffer);
            let read = self.state.total_in() - before_in;
            let count = self.state.total_out() - before_out;
            self.stream.consume(read as usize);
            self.produced += count;
            match status.map_err(io::Error::other)? {
                Status::StreamEnd => self.ended = true,
                Status::MemNeeded => return Err(io::ErrorKind::OutOfMemory.into()),
                _ if is_done && count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
            if count > 0 {
                return Ok(count as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that hold `text` without compressing it.
    fn frame(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn decoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        Decoder::new(bytes)?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn frames_are_joined_and_skippable_ones_left_out() {
        let table = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"toc"].concat();
        let bytes = [table.clone(), frame(b"mem"), frame(b""), table, frame(b"cached")].concat();
        assert_eq!(decoded(&bytes).unwrap(), b"memcached");
        assert!(decoded(&bytes[..bytes.len() - 2]).is_err());
        assert!(decoded(&[&bytes[..], b"garbage"].concat()).is_err());
    }

    /// Two streams of Python's bz2 module, with "mem" and "cached".
    const BZIP2_STREAMS: &[u8] = &[
        0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x66, 0x6a, 0xb3, 0x27, 0x00, 0x00, 0x00, 0x81,
        0x00, 0x02, 0x02, 0x20, 0x00, 0x21, 0x00, 0x82, 0x2c, 0x5d, 0xc9, 0x14, 0xe1, 0x42, 0x41, 0x99, 0xaa, 0xcc,
        0x9c, 0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x4d, 0x97, 0x10, 0x94, 0x00, 0x00, 0x00,
        0x81, 0x00, 0x2e, 0x40, 0x20, 0x00, 0x21, 0x83, 0x41, 0x9a, 0x09, 0x6e, 0x0e, 0x2e, 0xe4, 0x8a, 0x70, 0xa1,
        0x20, 0x9b, 0x2e, 0x21, 0x28,
    ];
    /// The same of its lzma module.
    const XZ_STREAMS: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00,
        0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x02, 0x6d, 0x65, 0x6d, 0x00, 0x00, 0x7e, 0x3a, 0x3e, 0xea,
        0x11, 0x98, 0xc3, 0xfe, 0x00, 0x01, 0x1b, 0x03, 0x0b, 0x2f, 0xb9, 0x10, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00,
        0x00, 0x00, 0x00, 0x04, 0x59, 0x5a, 0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46,
        0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x05, 0x63, 0x61, 0x63,
        0x68, 0x65, 0x64, 0x00, 0x00, 0x00, 0x30, 0xc8, 0x7b, 0x3c, 0x99, 0xba, 0xdc, 0x95, 0x00, 0x01, 0x1e, 0x06,
        0xc1, 0x2f, 0xa4, 0x1d, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];

    #[test]
    fn streams_of_bzip2_and_xz_are_joined() {
        for bytes in [BZIP2_STREAMS, XZ_STREAMS] {
            assert_eq!(decoded(bytes).unwrap(), b"memcached");
            assert!(decoded(&bytes[..bytes.len() - 2]).is_err());
            let mut damaged = bytes.to_vec();
            damaged[20] ^= 0xff;
            assert!(decoded(&damaged).is_err());
        }
        for name in [&b"BZhello"[..], b"BZh91AY"] {
            assert_eq!(decoded(name).unwrap(), name);
        }
    }

    #[test]
    fn an_error_is_returned_again() {
        let damaged = |bytes: &[u8], at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 0xff;
            bytes
        };
        let zstd = frame(b"memcached");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, b"memcached").unwrap();
        for bytes in [
            damaged(BZIP2_STREAMS, 20),
            damaged(XZ_STREAMS, 20),
            damaged(&gzip.finish().unwrap(), 12),
            zstd[..zstd.len() - 1].to_vec(),
            // Wrong properties of a chunk. lzma-rust2 would never end.
            [&XZ_STREAMS[..24], &[0xe0, 0, 0, 0, 5, 0xff]].concat(),
        ] {
            // More follows, which a decoder could read.
            let bytes = bytes.repeat(2);
            let mut decoder = Decoder::new(bytes.as_slice()).unwrap();
            let first = decoder.read_to_end(&mut Vec::new()).unwrap_err();
            for _ in 0..3 {
                let again = decoder.read(&mut [0; 100]).unwrap_err();
                assert_eq!((again.kind(), again.to_string()), (first.kind(), first.to_string()));
            }
        }
    }

    #[test]
    fn countless_bzip2_streams_are_refused() {
        /// An empty stream.
        const EMPTY: &[u8] = &[0x42, 0x5a, 0x68, 0x39, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0, 0, 0, 0];
        let mut bytes = [BZIP2_STREAMS, &EMPTY.repeat(998)].concat();
        assert_eq!(decoded(&bytes).unwrap(), b"memcached");
        // Nothing after the limit is decoded.
        bytes.extend(EMPTY);
        bytes.extend(b"garbage");
        let error = decoded(&bytes).unwrap_err().to_string();
        assert_eq!(
            error,
            "it has 1001 bzip2 streams for 9 bytes, refusing a possible decompression bomb"
        );
    }

    #[test]
    fn bzip2_streams_of_an_ordinary_size_are_not_counted() {
        use bzip2::Compression;
        let block = vec![0; 1 << 17];
        let mut stream = Vec::new();
        let mut encoder = bzip2::write::BzEncoder::new(&mut stream, Compression::fast());
        io::Write::write_all(&mut encoder, &block).unwrap();
        encoder.finish().unwrap();
        let decoded = decoded(&stream.repeat(1100)).unwrap();
        assert_eq!(decoded.len(), 1100 * block.len());
    }

    #[test]
    fn the_memory_of_xz_is_limited() {
        let mut bytes = XZ_STREAMS.to_vec();
        // The dictionary's size in the header of the block, and the checksum of that header.
        assert_eq!(bytes.get(12..16), Some(&[2, 0, 0x21, 1][..]));
        bytes[16] = 40;
        let mut checksum = flate2::Crc::new();
        checksum.update(&bytes[12..20]);
        bytes[20..24].copy_from_slice(&checksum.sum().to_le_bytes());
        let error = decoded(&bytes).unwrap_err();
        assert!(error.to_string().contains("memory"), "{error}");
    }

    #[test]
    fn other_compressions_are_named() {
        let error = decoded(b"\x04\x22\x4d\x18...").unwrap_err().to_string();
        assert!(error.contains("compressed with lz4"), "{error}");
        assert_eq!(decoded(b"plain").unwrap(), b"plain");
        assert_eq!(decoded(b"").unwrap(), b"");
    }
}
