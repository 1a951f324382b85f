//! Standard base64 with the errors of Go's `encoding/base64`.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Go requires the padding and ignores the unused bits before it.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// `base64.StdEncoding.DecodeString`: line ends inside are skipped. `[]byte` fields are decoded this way.
///
/// # Errors
/// Go's message, `illegal base64 data at input byte n`.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let decoded = if memchr::memchr2(b'\r', b'\n', text.as_bytes()).is_some() {
        DECODER.decode(text.replace(['\r', '\n'], ""))
    } else {
        DECODER.decode(text)
    };
    decoded.map_err(|_| format!("illegal base64 data at input byte {}", fault(text.as_bytes())))
}

/// `base64.StdEncoding.EncodeToString`.
#[must_use]
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Offset at which Go reports an error in invalid input.
fn fault(bytes: &[u8]) -> usize {
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let next = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| is_line_end(byte)).count()
    };
    // Number of characters read of a group of four.
    let mut read = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            byte if is_line_end(byte) => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => read = (read + 1) % 4,
            b'=' if read == 2 => {
                let second = next(at + 1);
                return match bytes.get(second) {
                    None => bytes.len(),
                    Some(b'=') => next(second + 1),
                    // The index of the last byte that was read.
                    Some(_) => second - 1,
                };
            }
            b'=' if read == 3 => return next(at + 1),
            _ => return at,
        }
    }
    // The input ends within a group.
    bytes.len() - read
}
