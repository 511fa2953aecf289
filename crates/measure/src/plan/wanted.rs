//! Which tests a plan runs, and what makes their tables valid.

use std::time::Duration;

use units::{FrameSize, Frames, LinkSpeed, Load};

use super::{document::Plan, error::PlanError, limits::*};
use crate::schema::{test::Test, text::span_text};

/// Most time for a test where the plan says none, and at least so many times what a soak sends: beside it, segments have
/// their waits, and invalid ones are repeated.
const TEST_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
const SOAKS: u32 = 2;

impl Plan {
    /// Whether the test is asked for.
    pub fn runs(&self, test: Test) -> bool {
        self.tests.contains(&test)
    }

    /// The procedures asked for, in order: every test but the search and its latency trial.
    pub fn procedures(&self) -> impl Iterator<Item = Test> + '_ {
        self.tests.iter().copied().filter(|t| !t.is_search())
    }

    /// Whether the throughput found is confirmed by a latency trial.
    pub fn wants_latency(&self) -> bool {
        self.latency.enabled && self.runs(Test::Latency) && self.runs(Test::Throughput)
    }

    /// Most time for one test besides the throughput at one frame size: `test_timeout`, or a day, or twice the time that a
    /// soak sends where that is more.
    pub fn time_of_a_test(&self) -> Duration {
        let soak = self.soak.as_ref().map_or(Duration::ZERO, |t| t.duration.saturating_mul(SOAKS));
        self.test_timeout.unwrap_or(TEST_TIMEOUT.max(soak))
    }

    /// Whether a test goes by the throughput of its frame size.
    pub fn needs_throughput(&self, test: Test) -> bool {
        match test {
            Test::Throughput | Test::FrameLoss | Test::Bursty | Test::AddressCaching | Test::AddressLearning => false,
            Test::Soak => self.soak.as_ref().is_none_or(|s| s.load.is_none()),
            _ => true,
        }
    }

    /// Adds the search that tests need, fills in the tables of those that run, drops the others', and checks them.
    pub(super) fn settle_tests(&mut self) -> Check {
        if self.tests.is_empty() {
            return Err(PlanError::value("tests", "[]", "must name one test at least, such as \"throughput\""));
        }
        self.check_address_tests_alone()?;
        for (i, test) in self.tests.iter().enumerate() {
            if self.tests[..i].contains(test) {
                return Err(PlanError::value("tests", test, "is listed twice"));
            }
        }
        if let Some(load) = self.throughput {
            if self.runs(Test::Throughput) {
                return Err(PlanError::value("throughput", load, "contradicts the test \"throughput\": leave one out"));
            }
            if self.runs(Test::Latency) {
                let legal = "cannot go with the test \"latency\", which is the search's own: use \"latency-profile\"";
                return Err(PlanError::value("throughput", load, legal));
            }
        } else if !self.runs(Test::Throughput) && self.tests.iter().any(|&t| self.needs_throughput(t)) {
            self.tests.insert(0, Test::Throughput);
        }
        self.test_timeout.map_or(Ok(()), |timeout| span("test_timeout", timeout, SHORTEST_TRIAL))?;
        self.check_mixes()?;
        self.fill_tables();
        self.check_addresses()?;
        self.check_loads_of_tests()?;
        self.check_bursts()?;
        self.check_durations()
    }

    /// The smallest frame size beside mixes.
    pub fn smallest_size(&self) -> Option<FrameSize> {
        self.frame_sizes.iter().filter_map(|frames| frames.size()).min()
    }

    /// That what is of one frame size has one.
    fn check_mixes(&self) -> Check {
        match self.tests.iter().find(|test| test.is_of_one_size()) {
            Some(test) if self.smallest_size().is_none() => {
                let legal = "is of one frame size, and frame_sizes has only mixes: leave the test out, or add a size";
                Err(PlanError::value("tests", test, legal))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn fill_tables(&mut self) {
        fn keep<T: Default>(table: &mut Option<T>, runs: bool) {
            *table = runs.then(|| table.take().unwrap_or_default());
        }
        let runs = Test::ALL.map(|t| self.runs(t));
        let runs = |test: Test| Test::ALL.iter().zip(runs).any(|(t, runs)| *t == test && runs);
        keep(&mut self.frame_loss, runs(Test::FrameLoss));
        keep(&mut self.back_to_back, runs(Test::BackToBack));
        keep(&mut self.recovery, runs(Test::Recovery));
        keep(&mut self.reset, runs(Test::Reset));
        keep(&mut self.bursty, runs(Test::Bursty));
        keep(&mut self.forwarding_rate, runs(Test::ForwardingRate));
        keep(&mut self.latency_profile, runs(Test::LatencyProfile));
        keep(&mut self.pdv, runs(Test::Pdv));
        keep(&mut self.soak, runs(Test::Soak));
        keep(&mut self.addresses, runs(Test::AddressCaching) || runs(Test::AddressLearning));
    }

    fn check_loads_of_tests(&self) -> Check {
        if let Some(t) = &self.frame_loss {
            between("frame_loss.step", t.step, LOSS_STEP)?;
        }
        if let Some(t) = &self.forwarding_rate {
            between("forwarding_rate.step", t.step, RATE_STEP)?;
        }
        if let Some(t) = &self.recovery {
            within("recovery.overload_percent", t.overload_percent, OVERLOAD_PERCENT)?;
        }
        if let Some(t) = &self.latency_profile {
            if t.loads_percent.is_empty() || t.loads_percent.len() > 32 {
                let given = format!("{} loads", t.loads_percent.len());
                return Err(PlanError::value("latency_profile.loads_percent", given, "must be 1 to 32 loads"));
            }
            t.loads_percent.iter().try_for_each(|&p| within("latency_profile.loads_percent", p, LOAD_PERCENT))?;
            above_zero("latency_profile.idle", t.idle, &self.frame_sizes, self.link.speed)?;
            within("latency_profile.repetitions", t.repetitions, REPETITIONS)?;
        }
        if let Some(t) = &self.pdv {
            within("pdv.load_percent", t.load_percent, LOAD_PERCENT)?;
        }
        if let Some(t) = &self.soak {
            within("soak.load_percent", t.load_percent, LOAD_PERCENT)?;
            between("soak.loss_budget", t.loss_budget, LOSS_BUDGET)?;
            if let Some(load) = t.load {
                above_zero("soak.load", load, &self.frame_sizes, self.link.speed)?;
            }
        }
        match self.throughput {
            Some(load) => above_zero("throughput", load, &self.frame_sizes, self.link.speed),
            None => Ok(()),
        }
    }

    fn check_bursts(&self) -> Check {
        if let Some(t) = &self.back_to_back {
            span("back_to_back.limit", t.limit, SHORTEST_BURST)?;
            if t.limit > LONGEST_BURST {
                let legal = "must be at most 30s (RFC 9004 §6.2)";
                return Err(PlanError::value("back_to_back.limit", span_text(t.limit), legal));
            }
            within("back_to_back.step", t.step, BURST_FRAMES)?;
            within("back_to_back.repetitions", t.repetitions, REPETITIONS)?;
            within("back_to_back.retries", t.retries, RETRIES)?;
            if let Some(z) = t.retry_max_lost.filter(|_| t.retries == 0) {
                let legal = "contradicts back_to_back.retries = 0: it limits retries that are never made";
                return Err(PlanError::value("back_to_back.retry_max_lost", z, legal));
            }
        }
        if let Some(t) = &self.bursty {
            between("bursty.precision", t.precision, COARSE_PRECISION)?;
            if t.burst_sizes.is_empty() || t.burst_sizes.len() > 16 {
                let given = format!("{} sizes", t.burst_sizes.len());
                return Err(PlanError::value("bursty.burst_sizes", given, "must list 1 to 16 sizes"));
            }
            for (i, &size) in t.burst_sizes.iter().enumerate() {
                within("bursty.burst_sizes", size, BURST_SIZE)?;
                if t.burst_sizes[..i].contains(&size) {
                    return Err(PlanError::value("bursty.burst_sizes", size, "is listed twice"));
                }
            }
        }
        if let Some(t) = &self.recovery {
            within("recovery.repetitions", t.repetitions, REPETITIONS)?;
        }
        let Some(t) = &self.reset else { return Ok(()) };
        within("reset.repetitions", t.repetitions, REPETITIONS)?;
        span("reset.command_timeout", t.command_timeout, SHORTEST_TRIAL)?;
        if t.command.first().is_some_and(|program| program.trim().is_empty()) || t.command.len() > 256 {
            let legal =
                "must be a program and at most 255 arguments, such as [\"systemctl\", \"restart\", \"vswitch\"]";
            return Err(PlanError::value("reset.command", format!("{} words", t.command.len()), legal));
        }
        if t.at.is_zero() || t.at >= t.duration {
            let legal = "must be above 0 and before the end of reset.duration";
            return Err(PlanError::value("reset.at", span_text(t.at), legal));
        }
        Ok(())
    }

    fn check_durations(&self) -> Check {
        let given = [
            ("frame_loss.duration", self.frame_loss.as_ref().map(|t| t.duration)),
            ("bursty.duration", self.bursty.as_ref().map(|t| t.duration)),
            ("forwarding_rate.duration", self.forwarding_rate.as_ref().map(|t| t.duration)),
            ("latency_profile.duration", self.latency_profile.as_ref().map(|t| t.duration)),
            ("recovery.overload", self.recovery.as_ref().map(|t| t.overload)),
            ("recovery.watch", self.recovery.as_ref().map(|t| t.watch)),
            ("reset.duration", self.reset.as_ref().map(|t| t.duration)),
            ("pdv.duration", self.pdv.as_ref().map(|t| t.duration)),
            ("pdv.window", self.pdv.as_ref().map(|t| t.window)),
            ("soak.duration", self.soak.as_ref().map(|t| t.duration)),
            ("soak.segment", self.soak.as_ref().map(|t| t.segment)),
            ("soak.window", self.soak.as_ref().map(|t| t.window)),
        ];
        given
            .into_iter()
            .filter_map(|(key, time)| Some((key, time?)))
            .try_for_each(|(k, t)| span(k, t, SHORTEST_TRIAL))?;
        let soak = self.soak.as_ref().map_or(Duration::ZERO, |t| t.duration);
        if let Some(timeout) = self.test_timeout.filter(|&timeout| timeout < soak) {
            let legal = format!(
                "must be at least soak.duration = {}, and some more for its waits: or leave it out",
                span_text(soak)
            );
            return Err(PlanError::value("test_timeout", span_text(timeout), legal));
        }
        let pairs = [
            self.pdv.as_ref().map(|t| ("pdv.window", t.window, "pdv.duration", t.duration)),
            self.soak.as_ref().map(|t| ("soak.window", t.window, "soak.segment", t.segment)),
            self.soak.as_ref().map(|t| ("soak.segment", t.segment, "soak.duration", t.duration)),
        ];
        for (part, a, whole, b) in pairs.into_iter().flatten() {
            if a > b {
                return Err(PlanError::value(part, span_text(a), format!("must be at most {whole}")));
            }
            // The windows of a trial are kept in its record.
            if b.as_secs_f64() / a.as_secs_f64() > 100_000.0 {
                let legal = format!("must be at least a hundred-thousandth of {whole}");
                return Err(PlanError::value(part, span_text(a), legal));
            }
        }
        Ok(())
    }
}

/// A load that is above nothing, where its unit can be told by now.
fn above_zero(key: &str, load: Load, sizes: &[Frames], link: Option<LinkSpeed>) -> Check {
    match sizes.iter().filter_map(|&s| load.resolve(s, link).ok()).find(|fps| fps.get() <= 0.0) {
        Some(_) => Err(PlanError::value(key, load, "must be above 0 frames/s")),
        None => Ok(()),
    }
}

impl Plan {
    /// Whether the plan's tests are those between three ports.
    pub fn tests_addresses(&self) -> bool {
        self.tests.iter().any(|t| t.is_of_addresses())
    }

    /// Tests between three ports run alone.
    fn check_address_tests_alone(&self) -> Check {
        match self.tests.iter().find(|t| !t.is_of_addresses()) {
            Some(other) if self.tests_addresses() => {
                let legal = "uses two ports, and the address tests use three: run them in separate runs";
                Err(PlanError::value("tests", other, legal))
            }
            _ => Ok(()),
        }
    }

    fn check_addresses(&self) -> Check {
        let Some(t) = &self.addresses else { return Ok(()) };
        within("addresses.most", t.most, ADDRESSES)?;
        within("addresses.initial", t.initial, 1..=t.most)?;
        between("addresses.precision", t.precision, COARSE_PRECISION)?;
        span("addresses.age", t.age, SHORTEST_AGE)?;
        let size = self.smallest_size().unwrap_or(FrameSize::MIN);
        let rates = [
            ("addresses.learning_rate", t.learning_rate),
            ("addresses.most_rate", t.most_rate),
            ("addresses.test_rate", t.test_rate),
        ];
        for (key, rate) in rates {
            // A share of a link whose speed nobody gave is looked at when the ports have told.
            let Ok(fps) = rate.resolve(size, self.link.speed) else { continue };
            if fps.get() < 1.0 {
                return Err(PlanError::value(key, rate, "must be at least 1 frame/s"));
            }
        }
        Ok(())
    }
}
