//! Replaces the crate `libfuzzer-sys` in `tests/seeds`, which runs the targets without a fuzzer.

/// Makes a fuzz target a function, `run`.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:block) => {
        /// Runs the target with one input.
        pub fn run($data: &[u8]) {
            $body
        }
    };
}
