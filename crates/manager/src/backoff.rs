//! How long to wait after a failure.
use std::time::Duration;

/// Exponential back-off: the delay doubles with each failure in a row up to a cap, and is spread by a random share, so
/// that many objects that fail for one reason do not come back all at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub base: Duration,
    /// No delay is longer than this, jitter included.
    pub cap: Duration,
    /// Share of the delay by which it is shortened at random: 0.0 for none, 0.5 for delays between a half and the whole.
    pub jitter: f64,
}

impl Default for Backoff {
    /// From 100 ms to 5 minutes, each delay between a half and the whole of its nominal length.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(100),
            cap: Duration::from_secs(300),
            jitter: 0.5,
        }
    }
}

impl Backoff {
    /// The delay after `failures` failures in a row (1 for the first).
    pub fn delay(&self, failures: u32) -> Duration {
        self.delay_at(failures, fastrand::f64())
    }

    /// The delay with `random` between 0.0 (the whole) and 1.0 (shortened by the whole jitter).
    fn delay_at(&self, failures: u32, random: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(63);
        let nominal = (self.base.as_secs_f64() * 2f64.powi(doublings.cast_signed())).min(self.cap.as_secs_f64());
        Duration::from_secs_f64(nominal * (1.0 - self.jitter.clamp(0.0, 1.0) * random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap() {
        let backoff = Backoff {
            base: Duration::from_millis(100),
            cap: Duration::from_secs(1),
            jitter: 0.0,
        };
        let delays: Vec<u128> = (1..=6).map(|failures| backoff.delay(failures).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(backoff.delay(u32::MAX), Duration::from_secs(1));
    }

    #[test]
    fn jitter_only_shortens() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            jitter: 0.5,
        };
        assert_eq!(backoff.delay_at(3, 0.0), Duration::from_secs(4));
        assert_eq!(backoff.delay_at(3, 1.0), Duration::from_secs(2));
    }
}
