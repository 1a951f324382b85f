//! The order in which go-yaml writes the keys of a mapping: letters after everything else, digits as numbers.

use std::cmp::Ordering;

use olmkit_go::unicode;

/// Sorts keys as go-yaml does.
///
/// The comparison is go-yaml's own, which is not a total order for some odd sets of keys. The standard library may panic
/// on those, so this is a merge sort, which gives some order for any comparison.
pub(super) fn sort_keys<T>(entries: &mut Vec<T>, key: &impl Fn(&T) -> &str) {
    if entries.len() < 2 {
        return;
    }
    let mut right = entries.split_off(entries.len() / 2);
    sort_keys(entries, key);
    sort_keys(&mut right, key);
    let mut merged = Vec::with_capacity(entries.len() + right.len());
    let mut left_items = std::mem::take(entries).into_iter().peekable();
    let mut right_items = right.into_iter().peekable();
    while let (Some(left), Some(right)) = (left_items.peek(), right_items.peek()) {
        let take_right = less(key(right), key(left));
        merged.extend(if take_right {
            right_items.next()
        } else {
            left_items.next()
        });
    }
    merged.extend(left_items);
    merged.extend(right_items);
    *entries = merged;
}

/// go-yaml's order of two string keys.
fn less(a: &str, b: &str) -> bool {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let same = a.floor_char_boundary(same).min(b.floor_char_boundary(same));
    let (common, rest_a) = a.split_at(same);
    let rest_b = b.get(same..).unwrap_or_default();
    let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return rest_a.len() < rest_b.len();
    };
    match (unicode::is_letter(first_a), unicode::is_letter(first_b)) {
        (true, true) => return first_a < first_b,
        (true, false) => return false,
        (false, true) => return true,
        (false, false) => {}
    }
    // After a run of digits that is not all zeros, a zero is one more digit of that number, not a leading zero.
    let inside_number = (first_a == '0' || first_b == '0')
        && common
            .chars()
            .rev()
            .take_while(|digit| unicode::is_digit(*digit))
            .any(|digit| digit != '0');
    let (number_a, length_a) = leading_number(rest_a, inside_number);
    let (number_b, length_b) = leading_number(rest_b, inside_number);
    let order = number_a
        .cmp(&number_b)
        .then(length_a.cmp(&length_b))
        .then(first_a.cmp(&first_b));
    order == Ordering::Less
}

/// The number that the digits at the start make, wrapping as Go's int64 does, and how many digits there are.
fn leading_number(text: &str, inside_number: bool) -> (i64, usize) {
    text.chars().take_while(|digit| unicode::is_digit(*digit)).fold(
        (i64::from(inside_number), 0),
        |(number, length), digit| {
            let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
            (number.wrapping_mul(10).wrapping_add(value), length + 1)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::sort_keys;

    #[test]
    fn digits_count_as_numbers_and_letters_come_last() {
        let mut keys = vec!["b", "a10", "a9", "a", "-x", "10", "9", "A", "_", "a01", "a1"];
        sort_keys(&mut keys, &|key: &&str| *key);
        assert_eq!(keys, ["-x", "_", "9", "10", "A", "a", "a1", "a01", "a9", "a10", "b"]);
    }
}
