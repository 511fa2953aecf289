//! What a trial gave for its load, as searches by loss see it: over the whole trial, or over its slices that count.

use units::Fps;

use crate::schema::{
    evidence::SliceEvidence,
    trial::{DirectionCounts, Purpose, TrialRecord},
};

/// A delay that grows by less than this in a second does not grow: the excess of the load over the capacity, as a share.
pub(super) const GROWTH: f64 = 2e-3;
/// Time for the queue of an unknown device to empty, seconds, and how much longer than it is seen to take.
const FIRST_DRAIN_S: f64 = 0.2;
const DRAIN_MARGIN: f64 = 2.0;
/// Share by which the tester may fall short of a load in the slices that count.
const SHORT: f64 = 2e-3;
/// Frames that the slices that count may hold fewer by where they are cut off.
const CUT_OFF: f64 = 2.0;
/// Time kept busy that tells a rate, seconds.
pub(super) const SATURATED_S: f64 = 2e-3;
/// Relative error of a rate that is known well.
const WELL: f64 = 0.01;
/// A buffer that was seen to take so many frames may take more, by this factor.
const ABSORBED_MARGIN: f64 = 1.5;
/// Where the device lost so much of what was sent, no slices are needed to tell that the load is too high for it.
const HOPELESS: f64 = 0.9;
/// Share of a trial that is set aside from which on it is disturbed.
pub(super) const DISTURBED: f64 = 0.1;

/// How long the queue of the device takes to empty: frames are waited for so much longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drain {
    seconds: f64,
    /// The queue was seen full. Before, it may hold more than was seen.
    filled: bool,
}

impl Default for Drain {
    fn default() -> Self {
        Self { seconds: FIRST_DRAIN_S, filled: false }
    }
}

impl Drain {
    /// The wait, seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Learns from a trial.
    pub(super) fn see(&mut self, e: &SliceEvidence) {
        let grown = e.delay.map_or(0, |delay| delay.end_ns.saturating_sub(delay.floor_ns));
        let seen = e.queue_s.max(grown as f64 * 1e-9) * DRAIN_MARGIN;
        let first = e.as_measured.is_some() && !self.filled;
        self.filled |= first;
        self.seconds = if first { seen } else { self.seconds.max(seen) };
    }

    /// Learns from a trial of a device that holds the tester's calls: each returns when its frames are out, and none wait then.
    pub(super) fn see_held(&mut self, e: &SliceEvidence) {
        if !self.filled {
            (self.filled, self.seconds) = (true, 0.0);
            self.see(e);
        }
    }
}

/// What a trial gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gave {
    /// Number of the trial.
    pub number: u32,
    /// Why it was run.
    pub purpose: Purpose,
    /// Its length as asked, seconds.
    pub duration_s: f64,
    /// The part of it that counts, seconds.
    pub effective_s: f64,
    /// The load that it counts for where it passed: less than its own where the tester offered less.
    pub load: Fps,
    /// Frames lost or refused.
    pub lost: u64,
    /// The same as a share of those offered.
    pub loss_ratio: f64,
}

/// What a trial by slices says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BySlices {
    /// It counts for its load.
    Counts(Gave),
    /// It passed, but at less than its load: the tester offered no more.
    Short(Gave),
    /// Somebody was away in nearly all of it.
    Unclear,
}

impl Gave {
    /// The same at the load that the tester offered in each direction, where that is less.
    pub(super) fn at_offered(trial: &TrialRecord) -> Option<Self> {
        let least = trial.least_offered();
        let load = Fps::from_raw((trial.spec.load_fps.get() * least).floor());
        (least < 1.0).then(|| Self { load, ..Self::whole(trial) })
    }

    /// Over the whole trial.
    pub fn whole(trial: &TrialRecord) -> Self {
        let duration_s = trial.spec.duration_s;
        Self {
            number: trial.number,
            purpose: trial.spec.purpose,
            duration_s,
            effective_s: duration_s,
            load: trial.spec.load_fps,
            lost: trial.lost(),
            loss_ratio: trial.loss_ratio(),
        }
    }

    /// Over the whole trial, where the device lost nearly all of what was sent. So few frames come out of it that it seems to be
    /// away in most slices, and those tell nothing.
    pub(super) fn hopeless(trial: &TrialRecord) -> Option<Self> {
        let sum = |of: fn(&DirectionCounts) -> u64| trial.directions.iter().map(of).sum::<u64>();
        let lost = sum(|d| d.lost.saturating_sub(d.port_missed.unwrap_or(0)));
        (lost as f64 > HOPELESS * sum(|d| d.sent) as f64).then(|| Self::whole(trial))
    }

    /// Over the slices that count. Frames that only a filling buffer saved from loss are lost: a
    /// delay that grows by so much in a second is that share of the load, and a longer trial would lose it. `passing`: the
    /// highest loss ratio that still passes a goal. `busiest`: what is known of the device.
    pub(super) fn by_slices(trial: &TrialRecord, passing: f64, busiest: &Busiest) -> BySlices {
        let spec = &trial.spec;
        let clean = |e: &&SliceEvidence| e.offered > 0 && e.is_clean(spec.duration_s);
        let Some(e) = trial.evidence.as_ref().filter(clean) else { return BySlices::Unclear };
        let offered = e.offered as f64;
        let growth = e.delay.map(|delay| delay.growth);
        let kept = growth.filter(|growth| *growth > GROWTH).map_or(0.0, |growth| growth / (1.0 + growth));
        let kept = kept.max(busiest.excess(&Sending::of(e, spec.load_fps.get())));
        // Of a device that lost frames what waits at the end came in beyond its rate, too: while its queue filled none were lost.
        let waits = e.delay.filter(|_| e.lost > 0).map_or(0, |delay| delay.end_ns.saturating_sub(delay.floor_ns));
        let loss_ratio = (e.lost as f64 / offered + waits as f64 * 1e-9 / spec.duration_s).max(kept);
        // Without a stretch in which delays can be seen to grow, the device may only have rested between absences.
        if loss_ratio <= passing && growth.is_none() {
            return BySlices::Unclear;
        }
        let lost = e.lost.max((loss_ratio * offered).round() as u64);
        let gave = Self { effective_s: e.clean_s, lost, loss_ratio, ..Self::whole(trial) };
        let short = SHORT.max(CUT_OFF / offered);
        match loss_ratio <= passing && e.offered_fps.get() < spec.load_fps.get() * (1.0 - short) {
            true => BySlices::Short(Self { load: e.offered_fps, ..gave }),
            false => BySlices::Counts(gave),
        }
    }
}

/// How a trial by slices was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sending {
    /// Frames a second and direction.
    pub load: f64,
    /// Seconds in slices that count, and in the others.
    pub clean_s: f64,
    pub aside_s: f64,
}

impl Sending {
    pub fn of(e: &SliceEvidence, load: f64) -> Self {
        Self { load, clean_s: e.clean_s, aside_s: e.aside_s }
    }
}

/// The most that a device was seen to forward while it was kept busy, and the most that its buffers took beyond that. They hide
/// for a while that a load is above the rate, and longer while somebody is away by moments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Busiest {
    /// Its rate and the error of that.
    rate: Option<(f64, f64)>,
    absorbed: f64,
}

impl Busiest {
    /// Takes a trial by slices.
    pub fn see(&mut self, e: &SliceEvidence, load: Fps) {
        let Some(busy) = e.undisturbed.filter(|s| s.seconds >= SATURATED_S) else { return };
        let (fps, error) = (busy.fps.get(), busy.error_fps.get());
        if fps + 2.0 * error < load.get() {
            let well = |(fps, error): (f64, f64)| error <= WELL * fps;
            self.rate = match self.rate {
                // Of rates that are known well one that is clearly higher: a device may forward less in a higher overload.
                Some(known) if well(known) && well((fps, error)) && fps - known.0 > 2.0 * error.hypot(known.1) => {
                    Some((fps, error))
                }
                // Else the one that is known best.
                Some(known) if known.1 * fps <= error * known.0 => Some(known),
                _ => Some((fps, error)),
            };
            self.absorbed = self.absorbed.max(e.absorbed as f64);
        }
    }

    /// Whether its rate is known well.
    pub fn is_known_well(&self) -> bool {
        self.rate.is_some_and(|(rate, error)| error <= WELL * rate)
    }

    /// The most frames that its buffers took; zero where that is not known.
    pub fn absorbed(&self) -> f64 {
        self.absorbed
    }

    /// The share of this load that the device loses by what is known of it, where a trial does not show otherwise: the
    /// trial was disturbed, or what its buffers take was not used up in it. Zero where nothing is known.
    pub fn excess(&self, of: &Sending) -> f64 {
        let Some((rate, error)) = self.rate else { return 0.0 };
        let rate = rate + 2.0 * error;
        let all_s = of.aside_s + of.clean_s;
        let disturbed = of.aside_s > DISTURBED * all_s;
        let taken = (of.load - rate) * all_s;
        // While nothing is sent they empty.
        let room = self.absorbed * ABSORBED_MARGIN + rate * of.aside_s;
        let excess = 1.0 - rate / of.load;
        match excess > SHORT && (disturbed || taken < room) {
            true => excess,
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use units::FrameSize;

    use super::*;
    use crate::{sim::SimDut, trial::TrialSpec};

    #[test]
    fn a_load_of_which_hardly_anything_comes_back_fails_by_the_whole_trial() {
        let hopeless = |received: u64, missed: Option<u64>| {
            let steady = TrialSpec::steady(FrameSize::MIN, Fps::from_raw(1e4), 0.1, Purpose::Search);
            let mut trial = SimDut::new(5e6, 1).run(&steady);
            let d = &mut trial.directions[0];
            (d.received, d.lost, d.port_missed) = (received, d.sent - received, missed);
            Gave::hopeless(&trial).map(|gave| (gave.lost, gave.effective_s))
        };
        assert_eq!(hopeless(99, None), Some((901, 0.1)));
        assert_eq!([100, 500, 1000].map(|received| hopeless(received, None)), [None; 3]);
        // What the tester's own port missed the device did not lose.
        assert_eq!((hopeless(50, Some(40)), hopeless(50, Some(60))), (Some((950, 0.1)), None));
    }

    #[test]
    fn what_filled_a_queue_that_then_lost_frames_is_lost_too() {
        // 256 frames wait after half of the trial; of 0.574 % beyond the rate only 0.32 % are lost in it.
        let loss = |load: f64, duration_s: f64| {
            let steady = TrialSpec::steady(FrameSize::MIN, Fps::new(load).unwrap(), duration_s, Purpose::Search);
            let trial = SimDut::new(5e6, 1).run(&TrialSpec { by_slices: true, ..steady });
            match Gave::by_slices(&trial, 0.005, &Busiest::default()) {
                BySlices::Counts(gave) => (trial.loss_ratio(), gave.loss_ratio, gave.lost),
                other => panic!("{other:?}"),
            }
        };
        let (seen, of_load, lost) = loss(5_028_858.0, 0.02);
        assert!(seen < 0.0034 && (0.0054..0.0060).contains(&of_load), "{seen} {of_load}");
        assert!((540..605).contains(&lost), "{lost}");
        let (seen, of_load, _) = loss(6e6, 0.1);
        assert!((of_load - 1.0 / 6.0).abs() < 1e-3 && of_load >= seen, "{seen} {of_load}");
        assert_eq!(loss(4.9e6, 0.1), (0.0, 0.0, 0));
    }
}
