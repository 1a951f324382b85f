//! The order in which Go's `sort.Slice` leaves items that it takes for equal. It is not stable, but the same for the same input.
//!
//! The algorithm is a pattern-defeating quicksort: each comparison and exchange must happen where Go has it, otherwise equal items
//! end in other places. `tests/orders.txt` has orders of Go itself.

/// Slices up to this length are sorted by insertion, which is stable.
const INSERTION: usize = 12;
/// From this length on, the pivot is the median of three medians.
const NINTHER: usize = 50;

/// Sorts a slice as `sort.Slice` of Go 1.19 and newer does.
///
/// ```
/// // Both 13-item lists have equal items. Their order changes.
/// let mut items: Vec<(u8, usize)> = (0..13).map(|at| (u8::from(at < 6), at)).collect();
/// olmkit_go::sort::slice(&mut items, |left, right| left.0 < right.0);
/// assert!(items.is_sorted_by_key(|item| item.0));
/// ```
pub fn slice<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let length = items.len();
    let limit = length.checked_ilog2().map_or(0, |log| log + 1);
    Sort { items, less }.quick(0, length, limit);
}

struct Sort<'s, T, L> {
    items: &'s mut [T],
    less: L,
}

/// A guess from the comparisons that chose a pivot.
#[derive(PartialEq)]
enum Hint {
    Increasing,
    Decreasing,
    Unknown,
}

impl<T, L: Fn(&T, &T) -> bool> Sort<'_, T, L> {
    fn less(&self, left: usize, right: usize) -> bool {
        let pair = self.items.get(left).zip(self.items.get(right));
        pair.is_some_and(|(left, right)| (self.less)(left, right))
    }

    fn swap(&mut self, left: usize, right: usize) {
        self.items.swap(left, right);
    }

    fn insertion(&mut self, start: usize, end: usize) {
        for from in start + 1..end {
            let mut at = from;
            while at > start && self.less(at, at - 1) {
                self.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    fn sift_down(&mut self, low: usize, high: usize, first: usize) {
        let mut root = low;
        loop {
            let mut child = 2 * root + 1;
            if child >= high {
                return;
            }
            if child + 1 < high && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }

    fn heap(&mut self, start: usize, end: usize) {
        let high = end - start;
        for low in (0..=(high - 1) / 2).rev() {
            self.sift_down(low, high, start);
        }
        for last in (0..high).rev() {
            self.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn quick(&mut self, mut start: usize, mut end: usize, mut limit: u32) {
        let (mut was_balanced, mut was_partitioned) = (true, true);
        loop {
            let length = end - start;
            if length <= INSERTION {
                return self.insertion(start, end);
            }
            if limit == 0 {
                return self.heap(start, end);
            }
            if !was_balanced {
                self.break_patterns(start, end);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == Hint::Decreasing {
                self.reverse(start, end);
                pivot = (end - 1) - (pivot - start);
                hint = Hint::Increasing;
            }
            if was_balanced && was_partitioned && hint == Hint::Increasing && self.partial_insertion(start, end) {
                return;
            }
            // The pivot equals the item before the range, so it is the smallest.
            if start > 0 && !self.less(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let (middle, is_partitioned) = self.partition(start, end, pivot);
            was_partitioned = is_partitioned;
            let (left, right) = (middle - start, end - middle);
            was_balanced = left.min(right) >= length / 8;
            if left < right {
                self.quick(start, middle, limit);
                start = middle + 1;
            } else {
                self.quick(middle + 1, end, limit);
                end = middle;
            }
        }
    }

    /// Moves items below the pivot to the left. Returns the pivot's place, and whether nothing moved.
    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(start, pivot);
        let (mut low, mut high) = self.narrow(start, start + 1, end - 1);
        if low > high {
            self.swap(high, start);
            return (high, true);
        }
        loop {
            self.swap(low, high);
            (low, high) = self.narrow(start, low + 1, high - 1);
            if low > high {
                break;
            }
        }
        self.swap(high, start);
        (high, false)
    }

    /// Skips items that are on the correct side of the pivot.
    fn narrow(&self, pivot: usize, mut low: usize, mut high: usize) -> (usize, usize) {
        while low <= high && self.less(low, pivot) {
            low += 1;
        }
        while low <= high && !self.less(high, pivot) {
            high -= 1;
        }
        (low, high)
    }

    /// Moves items that equal the pivot to the left. No item is smaller. Returns the first greater one.
    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.swap(start, pivot);
        let (mut low, mut high) = (start + 1, end - 1);
        loop {
            while low <= high && !self.less(start, low) {
                low += 1;
            }
            while low <= high && self.less(start, high) {
                high -= 1;
            }
            if low > high {
                return low;
            }
            self.swap(low, high);
            low += 1;
            high -= 1;
        }
    }

    /// Moves a few items of a range that is almost sorted. Returns true if it is sorted then.
    fn partial_insertion(&mut self, start: usize, end: usize) -> bool {
        const STEPS: usize = 5;
        let mut at = start + 1;
        for _ in 0..STEPS {
            while at < end && !self.less(at, at - 1) {
                at += 1;
            }
            if at == end {
                return true;
            }
            if end - start < NINTHER {
                return false;
            }
            self.swap(at, at - 1);
            if at - start >= 2 {
                for left in (1..at).rev() {
                    if !self.less(left, left - 1) {
                        break;
                    }
                    self.swap(left, left - 1);
                }
            }
            if end - at >= 2 {
                for right in at + 1..end {
                    if !self.less(right, right - 1) {
                        break;
                    }
                    self.swap(right, right - 1);
                }
            }
        }
        false
    }

    /// Exchanges three items with others that follow from the length.
    fn break_patterns(&mut self, start: usize, end: usize) {
        let length = end - start;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let modulus = (length + 1).next_power_of_two() as u64;
        let middle = start + length / 4 * 2;
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut other = (random & (modulus - 1)) as usize;
            if other >= length {
                other -= length;
            }
            self.swap(at, start + other);
        }
    }

    fn choose_pivot(&self, start: usize, end: usize) -> (usize, Hint) {
        const MOST_SWAPS: usize = 12;
        let length = end - start;
        let quarter = |number: usize| start + length / 4 * number;
        let (mut first, mut second, mut third) = (quarter(1), quarter(2), quarter(3));
        let mut swaps = 0;
        if length >= 8 {
            if length >= NINTHER {
                for place in [&mut first, &mut second, &mut third] {
                    *place = self.median([*place - 1, *place, *place + 1], &mut swaps);
                }
            }
            second = self.median([first, second, third], &mut swaps);
        }
        let hint = match swaps {
            0 => Hint::Increasing,
            MOST_SWAPS => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (second, hint)
    }

    fn median(&self, [first, second, third]: [usize; 3], swaps: &mut usize) -> usize {
        let mut ordered = |left: usize, right: usize| {
            if self.less(right, left) {
                *swaps += 1;
                return (right, left);
            }
            (left, right)
        };
        let (first, second) = ordered(first, second);
        let (second, _) = ordered(second, third);
        ordered(first, second).1
    }

    fn reverse(&mut self, start: usize, end: usize) {
        if let Some(range) = self.items.get_mut(start..end) {
            range.reverse();
        }
    }
}
