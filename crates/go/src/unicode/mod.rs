//! Classes of characters as Go's `unicode` has them. Rust and the `regex` crate follow other editions of Unicode.

mod tables;

/// `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
#[must_use]
pub fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    contains(&tables::PRINT, character)
}

/// `unicode.IsLetter`: general category L, which is narrower than [`char::is_alphabetic`].
#[must_use]
pub fn is_letter(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphabetic();
    }
    contains(&tables::LETTER, character)
}

/// `unicode.IsDigit`: general category Nd.
#[must_use]
pub fn is_digit(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_digit();
    }
    contains(&tables::DIGIT, character)
}

/// The table alternates between the first character of each range and the first one after it.
fn contains(table: &[u32], character: char) -> bool {
    table.partition_point(|bound| *bound <= u32::from(character)) % 2 == 1
}
