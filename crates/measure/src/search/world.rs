//! For tests: devices whose capacity is known, measured by a tester that is away often.

use units::{Fps, FrameSize, LinkSpeed};

use super::{for_config, Answer, Search, SearchConfig, Step};
use crate::{
    evidence::{
        self,
        model::{trial, Device, SLICE},
    },
    plan::{Method, Plan},
    schema::{
        timeline::Slice,
        trial::{Rule, TrialRecord, TrialSpec, Violation},
    },
    sim::{Rng, SimDut},
};

/// What is measured with what.
pub(crate) struct World {
    pub device: Device,
    /// In overload the device forwards less by this share of the excess.
    pub degrades: f64,
    /// The most that the tester offers.
    pub tester: f64,
    /// Share of the time in which the tester is away, and the device.
    pub tester_away: f64,
    pub device_away: f64,
    /// Frames lost in the first trial by accident.
    pub accident: u64,
    /// Share of all frames that the device loses, at any load.
    pub loses: f64,
    /// In this trial, counted from 0, the device is faster by this factor.
    pub lucky: Option<(u32, f64)>,
    /// The most that the tester's own port takes in; it misses the rest.
    pub takes: f64,
    /// Below its rate by so much at most, as a share, the device loses a few frames in some trials: the more the nearer.
    pub fuzzy: f64,
    /// Chance that the next trial has the same luck with that as the one before: what takes frames lasts for a while.
    pub moody: f64,
    /// The device is slower by this factor in this share of the trials: it has two rates, as its core and its memory happen to lie.
    pub modes: Option<(f64, f64)>,
    /// From trial to trial its rate differs by this share, one standard deviation.
    pub jitter: f64,
    /// Luck of the last trial, 0 to 1.
    pub luck: f64,
    /// From this trial on the device is slower by this factor.
    pub slows: Option<(u32, f64)>,
    /// These trials, counted from 0, break the rule. One that the tester offered in part has the gaps that explain it.
    pub spoiled: Option<(std::ops::Range<u32>, Rule)>,
    /// How often an invalid trial is made again.
    pub repeats: u32,
    /// Loads asked for, and whether each was by slices with a wait for late frames.
    pub asked: Vec<(f64, bool)>,
    /// The highest load of the plan, below what the tester does.
    pub upper: Option<f64>,
    /// See [`SearchConfig::kernel_pair`].
    pub kernel_pair: Option<f64>,
    /// The kernel keeps the tester busy for this share of the time while it may let frames out at once; else for as long as it takes.
    pub waits: Option<f64>,
    pub rng: Rng,
    pub trials: u32,
}

impl World {
    pub(crate) fn new(rate: f64, buffer: f64, seed: u64) -> Self {
        Self {
            device: Device::new(rate, buffer, 2e-6),
            degrades: 0.0,
            tester: 40e6,
            tester_away: 0.0,
            device_away: 0.0,
            accident: 0,
            loses: 0.0,
            lucky: None,
            takes: f64::INFINITY,
            fuzzy: 0.0,
            moody: 0.0,
            modes: None,
            jitter: 0.0,
            luck: 0.5,
            slows: None,
            spoiled: None,
            repeats: 40,
            asked: Vec::new(),
            upper: None,
            kernel_pair: None,
            waits: None,
            rng: Rng::new(seed),
            trials: 0,
        }
    }

    pub(crate) fn noisy(rate: f64, buffer: f64, seed: u64) -> Self {
        Self { tester_away: 0.4, device_away: 0.1, ..Self::new(rate, buffer, seed) }
    }

    /// Absences of 0.1 to 5 ms that take this share of the time.
    fn absences(&mut self, share: f64, slices: usize) -> Vec<(usize, usize)> {
        let (mut all, mut at) = (Vec::new(), 0);
        while share > 0.0 && at < slices {
            let length = 1 + (self.rng.bits() % 50) as usize;
            at += (self.rng.share() * 2.0 * length as f64 * (1.0 - share) / share) as usize + 1;
            all.push((at, length));
            at += length;
        }
        all
    }

    pub(crate) fn run(&mut self, spec: &TrialSpec) -> TrialRecord {
        let slices = (spec.duration_s / SLICE) as usize;
        let (tester, device) = (self.absences(self.tester_away, slices), self.absences(self.device_away, slices));
        let load = spec.load_fps.get().min(self.tester);
        let slower = self.slows.filter(|(from, _)| self.trials >= *from).map_or(1.0, |(_, factor)| factor);
        let luck = self.lucky.filter(|(trial, _)| self.trials == *trial).map_or(1.0, |(_, factor)| factor);
        if self.rng.share() >= self.moody {
            self.luck = self.rng.share();
        }
        let mode = self.modes.filter(|(_, share)| self.luck < *share).map_or(1.0, |(factor, _)| factor);
        // Twelve uniform ones are nearly a normal one.
        let normal = (0..12).map(|_| self.rng.share()).sum::<f64>() - 6.0;
        let full = self.device.rate * slower * luck * mode * (1.0 + self.jitter * normal);
        let excess = (load - full).max(0.0);
        let rate = (full - excess * self.degrades).max(0.0);
        let rate = rate.min(self.takes);
        let timeline = trial(&Device { rate, ..self.device }, load, slices, &tester, &device);
        let mut record = SimDut::new(1e12, 1).run(spec);
        let sum = |of: fn(&Slice) -> u32| timeline.directions[0].iter().map(|slice| u64::from(of(slice))).sum::<u64>();
        let (sent, received) = (sum(|s| s.sent), sum(|s| s.received));
        let d = &mut record.directions[0];
        (d.sent, d.received, d.lost) = (sent, received, sent - received);
        self.trials += 1;
        record.number = self.trials;
        record.violations.clear();
        record.evidence = evidence::of(&timeline, spec.duration_s, evidence::Watch::Known, 1);
        if let Some(evidence) = record.evidence.as_mut().filter(|_| self.trials == 1) {
            evidence.lost += self.accident;
        }
        if let Some(evidence) = record.evidence.as_mut() {
            evidence.lost += (evidence.offered as f64 * self.loses) as u64;
        }
        if self.takes.is_finite() {
            let came = load.min(full).min(self.takes);
            let d = &mut record.directions[0];
            (d.received, d.lost) = ((came * spec.duration_s) as u64, ((load - came) * spec.duration_s) as u64);
            d.port_missed = Some(((load.min(full) - came) * spec.duration_s) as u64);
        }
        let near = 1.0 - (1.0 - load / self.device.rate) / self.fuzzy.max(1e-9);
        let loses = self.luck < near;
        if let Some(evidence) = record.evidence.as_mut().filter(|_| self.fuzzy > 0.0 && loses) {
            evidence.lost += 40;
        }
        self.asked.push((spec.load_fps.get(), spec.by_slices && spec.drain_s > 0.0));
        let work = (load / self.tester).min(1.0);
        let busy = self.waits.filter(|_| spec.load_fps.get() < self.tester).unwrap_or(work);
        let busy_ns = self.kernel_pair.map(|_| (spec.duration_s * busy * 1e9) as u64);
        record.interference.lcores[0].busy_ns = busy_ns;
        if let Some((_, rule)) = self.spoiled.as_ref().filter(|(which, _)| which.contains(&(self.trials - 1))) {
            record.violations.push(Violation { rule: *rule, text: "spoiled".to_owned() });
            record.directions[0].skipped = record.directions[0].sent / 5;
            record.interference.lcores[0].total_gap_ns = (spec.duration_s * 0.4e9) as u64;
        }
        record
    }

    /// What a quick search by slices finds.
    pub(crate) fn find(&mut self, method: Method) -> Answer {
        let mut search = for_config(self.config(method));
        for _ in 0..900 {
            match search.next() {
                Step::Done(answer) => return answer,
                Step::Run(spec) => search.report(&self.run(&spec)),
            }
        }
        panic!("no end after 900 trials: {:?}", search.so_far());
    }

    /// That of a quick search by slices.
    pub(crate) fn config(&self, method: Method) -> SearchConfig {
        let mut plan = Plan::default();
        plan.search.method = method;
        let plan = plan.quick().validate().unwrap();
        let most = Some(Fps::from_raw(30e6));
        let mut config = SearchConfig::for_size(&plan, FrameSize::MIN, None::<LinkSpeed>, most).unwrap();
        (config.by_slices, config.max_repeats) = (true, self.repeats);
        if let Some(upper) = self.upper {
            (config.upper, config.upper_is_tester) = (Fps::from_raw(upper), false);
        }
        config.kernel_pair = self.kernel_pair.map(Fps::from_raw);
        config
    }
}
