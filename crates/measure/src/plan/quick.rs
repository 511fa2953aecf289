//! `--quick`: the same plan with short trials.

use std::time::Duration;

use units::{Fps, Load};

use super::{addresses::AddressesPlan, document::Plan, goals::Goals, limits::percent, search::Method};

impl Plan {
    /// The same plan with short trials: seven frame sizes of a two-core software path end in well under 100 s.
    ///
    /// Short ones also slip between the interruptions of a noisy machine: where a core is taken away a few times a
    /// second, most trials of 100 ms are clean and hardly one of a second is. The timeout bounds a frame size where
    /// most are invalid all the same.
    #[must_use]
    pub fn quick(mut self) -> Self {
        if !self.name.ends_with(" (quick)") {
            self.name.push_str(" (quick)");
            self.description.push_str(" (quick: short trials, not the standard's durations)");
        }
        if self.search.method == Method::Mlrsearch {
            // Contradictory goals stay as they are, for `validate` to name.
            if let Ok(set) = self.search.goals.clone().unwrap_or_default().set() {
                self.search.goals = Some(Goals::Listed(set.quick()));
            }
        } else {
            self.search.duration = Duration::from_millis(100);
            self.search.precision = percent(1.0);
        }
        self.search.timeout = Duration::from_secs(15);
        self.search.max_trials = Some(self.search.max_trials().max(400));
        self.latency.duration = Duration::from_millis(250);
        self.trust.residual = Duration::from_millis(20);
        self.trust.max_repeats = self.trust.max_repeats.max(40);
        self.trust.settle = Duration::ZERO;
        self.quick_tests();
        self
    }

    /// Short trials and few repetitions for the tests that run; each label says so.
    fn quick_tests(&mut self) {
        self.test_timeout = Some(Duration::from_secs(60));
        self.fill_tables();
        let ms = Duration::from_millis;
        if let Some(t) = &mut self.frame_loss {
            t.duration = ms(100);
        }
        if let Some(t) = &mut self.back_to_back {
            (t.limit, t.repetitions) = (ms(20), 3);
        }
        if let Some(t) = &mut self.recovery {
            (t.overload, t.watch, t.repetitions) = (ms(250), ms(250), 3);
        }
        if let Some(t) = &mut self.reset {
            (t.at, t.duration, t.repetitions) = (ms(500), Duration::from_secs(5), 1);
        }
        if let Some(t) = &mut self.bursty {
            (t.duration, t.precision) = (ms(100), percent(5.0));
        }
        if let Some(t) = &mut self.forwarding_rate {
            (t.duration, t.step) = (ms(100), percent(10.0));
        }
        if let Some(t) = &mut self.latency_profile {
            (t.duration, t.repetitions) = (ms(200), 3);
        }
        if let Some(t) = &mut self.pdv {
            (t.duration, t.window) = (ms(500), ms(50));
        }
        if let Some(t) = &mut self.soak {
            (t.duration, t.segment, t.window) = (Duration::from_secs(3), ms(500), ms(50));
        }
        if let Some(t) = &mut self.addresses {
            t.quick();
        }
    }
}

impl AddressesPlan {
    /// Short waits and few addresses.
    fn quick(&mut self) {
        let rate = |fps| Load::Frames(Fps::from_raw(fps));
        (self.most, self.age, self.precision) = (4096, Duration::from_secs(4), percent(10.0));
        (self.learning_rate, self.test_rate) = (rate(20e3), rate(20e3));
    }
}
