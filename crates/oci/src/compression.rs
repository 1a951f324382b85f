//! Decompression by what the bytes are: media types and file names are often wrong.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Formats that some engines read and the OCI image specification does not name.
const OTHERS: [(&[u8], &str); 3] = [
    (b"BZh", "bzip2"),
    (&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], "xz"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];

/// The compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
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
        match OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
            Some((_, name)) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("it is compressed with {name}; only gzip and Zstandard are supported"),
            )),
            None => Ok(Self::None),
        }
    }
}

/// A stream without its compression.
pub(crate) enum Decoder<R> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<R>>),
    Zstd(Box<ZstdDecoder<R>>),
}

impl<R: BufRead> Decoder<R> {
    pub(crate) fn new(mut stream: R) -> io::Result<Self> {
        Ok(match Compression::detect(stream.fill_buf()?)? {
            Compression::None => Self::Plain(stream),
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(stream))),
            Compression::Zstd => Self::Zstd(Box::new(ZstdDecoder::new(stream))),
        })
    }

    pub(crate) fn into_inner(self) -> R {
        match self {
            Self::Plain(stream) => stream,
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.stream,
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
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

    #[test]
    fn other_compressions_are_named() {
        let error = decoded(b"\xfd7zXZ\0...").unwrap_err().to_string();
        assert!(error.contains("compressed with xz"), "{error}");
        assert_eq!(decoded(b"plain").unwrap(), b"plain");
        assert_eq!(decoded(b"").unwrap(), b"");
    }
}
