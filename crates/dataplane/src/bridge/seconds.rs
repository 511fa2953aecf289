/// Whole seconds of a clock, without a division a burst.
#[derive(Debug)]
pub(super) struct Seconds {
    hz: u64,
    now_s: u32,
    /// The tick at which the next second begins.
    next: u64,
}

impl Seconds {
    pub fn new(hz: u64) -> Self {
        Self { hz: hz.max(1), now_s: 0, next: 0 }
    }

    /// The second that tick `now` is in. Ticks a little in the past count as the latest second.
    #[inline]
    pub fn second_of(&mut self, now: u64) -> u32 {
        if now >= self.next {
            self.turn(now);
        }
        self.now_s
    }

    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: u64) {
        let seconds = now / self.hz;
        self.now_s = seconds as u32;
        self.next = seconds.saturating_add(1).saturating_mul(self.hz);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_begin_on_their_tick() {
        let mut seconds = Seconds::new(1_000);
        let at = [0, 999, 1_000, 999, 1_999, 2_000, 70_500].map(|now| seconds.second_of(now));
        assert_eq!(at, [0, 0, 1, 1, 1, 2, 70]);
        assert_eq!(Seconds::new(0).second_of(u64::MAX), u32::MAX);
    }
}
