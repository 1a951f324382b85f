//! Sizes of strings, lists and maps.

/// Minimum and maximum number of characters, items or entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self::up_to(u64::MAX);

    pub(super) const fn exactly(size: u64) -> Self {
        Self {
            least: size,
            most: size,
        }
    }

    pub(super) const fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    /// The start of a union: empty, or the next operand.
    pub(super) const fn none(is_empty: bool) -> Self {
        Self {
            least: if is_empty { 0 } else { u64::MAX },
            most: 0,
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    /// The cost of so much for each.
    pub(super) fn cost(self, factor: f64) -> u64 {
        scaled(self.most, factor)
    }
}

/// A number times a factor, rounded up, as the server computes it in floating point.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions
)]
pub(super) fn scaled(number: u64, factor: f64) -> u64 {
    // The conversion back takes the largest number for what is larger.
    (number as f64 * factor).ceil() as u64
}

/// The sizes of the items of a list, or of the keys and values of a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) is_list: bool,
    pub(super) key: Size,
    pub(super) value: Size,
}

impl Entry {
    pub(super) fn of_list(value: Size) -> Self {
        Self {
            is_list: true,
            key: Size::exactly(1),
            value,
        }
    }

    pub(super) fn of_map(key: Size, value: Size) -> Self {
        Self {
            is_list: false,
            key,
            value,
        }
    }

    pub(super) fn union(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        Some(Self {
            is_list: one.is_list,
            key: one.key.union(other.key),
            value: one.value.union(other.value),
        })
    }
}
