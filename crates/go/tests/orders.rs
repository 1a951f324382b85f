//! Orders of `sort.Slice`, compared with Go's, which `dev/go-vectors` prints.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use olmkit_go::sort::slice;

/// The keys of a list: `SEED LENGTH KEYS`. Both programs compute them with the same numbers.
fn keys(seed: u64, length: usize, different: u64) -> Vec<u64> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..length).map(|_| next() % different).collect()
}

/// FNV-1a of the order.
fn fingerprint(order: &[usize]) -> u64 {
    let step = |hash: u64, at: &usize| (hash ^ *at as u64).wrapping_mul(1_099_511_628_211);
    order.iter().fold(14_695_981_039_346_656_037, step)
}

#[test]
fn orders_are_those_of_go() {
    let vectors = include_str!("orders.txt");
    let mut count = 0;
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [shape, seed, length, different, wanted] = words.as_slice() else {
            panic!("{line}");
        };
        let mut keys = keys(
            seed.parse().unwrap(),
            length.parse().unwrap(),
            different.parse().unwrap(),
        );
        match *shape {
            "ascending" => keys.sort_unstable(),
            "descending" => {
                keys.sort_unstable();
                keys.reverse();
            }
            "sawtooth" => keys
                .iter_mut()
                .enumerate()
                .for_each(|(at, key)| *key = at as u64 % (*key + 1)),
            _ => {}
        }
        let mut order: Vec<(u64, usize)> = keys.into_iter().zip(0..).collect();
        slice(&mut order, |left, right| left.0 < right.0);
        assert!(order.is_sorted_by_key(|item| item.0), "{line}");
        let order: Vec<usize> = order.into_iter().map(|(_, at)| at).collect();
        assert_eq!(fingerprint(&order).to_string(), *wanted, "{line}");
        count += 1;
    }
    assert!(count > 300, "{count}");
}
