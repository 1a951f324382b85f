//! How long to wait after a failure.
use std::time::Duration;

/// Exponential back-off: the delay doubles with each consecutive failure up to a cap. Jitter keeps objects that fail for
/// the same reason from retrying at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub base: Duration,
    /// Maximum delay, jitter included.
    pub cap: Duration,
    /// Maximum share by which a delay is shortened at random: 0.5 gives delays between half and full length.
    pub jitter: f64,
}

impl Default for Backoff {
    /// 100 ms to 5 minutes. Each delay is between half and full length.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(100),
            cap: Duration::from_secs(300),
            jitter: 0.5,
        }
    }
}

impl Backoff {
    /// The delay after `failures` consecutive failures (1 for the first).
    pub fn delay(&self, failures: u32) -> Duration {
        self.delay_at(failures, fastrand::f64())
    }

    /// The delay with `random` between 0.0 (full delay) and 1.0 (shortened by the full jitter).
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
