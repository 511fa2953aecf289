//! A simulated trial over time: short slices, as a tester cuts its own.

use super::{counted::Counted, flow::Server};
use crate::schema::timeline::{Cut, Slice};

/// What frames wait in.
pub(super) struct Queue<'a> {
    pub server: &'a Server<'a>,
    /// Delay of a frame that does not wait, seconds.
    pub base_s: f64,
}

impl Queue<'_> {
    /// The delay of a frame that leaves the tester at each of these moments, of which neighbours are not far apart.
    fn delays(&self, edges: &[f64], sent_by: &dyn Fn(f64) -> f64) -> Vec<f64> {
        let Server { queue, dead, capacity, .. } = *self.server;
        let mut queued = self.server.queued.min(queue);
        let mut before = edges.first().copied().unwrap_or(0.0);
        let delay = |at: &f64| {
            let capacity = capacity(before, *at).max(1e-9);
            let (from, to) = dead.unwrap_or((f64::INFINITY, f64::INFINITY));
            let alive = at - before - (to.min(*at) - from.max(before)).max(0.0);
            let come = sent_by(*at) - sent_by(before);
            let come = if *at > before { come * alive / (at - before) } else { 0.0 };
            queued = (queued + come - capacity * alive).clamp(0.0, queue);
            before = *at;
            let wait = queued / capacity;
            // What is in the queue when the device dies comes out when it is back.
            let stands = if from > *at && from < at + wait { to - from } else { 0.0 };
            self.base_s + wait + stands
        };
        edges.iter().map(delay).collect()
    }
}

/// The slices of one direction. Frames that are lost in a slice are at most those sent in it.
pub(super) fn of(cut: &Cut, counted: &Counted<'_>, queue: &Queue<'_>) -> Vec<Slice> {
    let edges: Vec<f64> = (0..=cut.count).map(|i| (i as f64 * cut.slice_s).min(counted.time)).collect();
    let sent_by = |at: f64| counted.flow.sent_by(at);
    let delays = queue.delays(&edges, &sent_by);
    let lost_by = counted.lost_by();
    let mut slices = vec![Slice::default(); cut.count];
    // By departure: cumulative, so that no fraction of a frame is lost.
    let (mut sent, mut lost) = (0, 0);
    let mut came = Vec::with_capacity(edges.len());
    let first = delays.first().copied().unwrap_or(0.0);
    came.push(Came { moment_s: first, frames: 0, delay_s: first });
    for (i, slice) in slices.iter_mut().enumerate() {
        let (Some([_, to]), Some([first, last])) = (pair(&edges, i), pair(&delays, i)) else { break };
        let by = |frames: f64, all: u64| if to < counted.time { frames.round().max(0.0) as u64 } else { all }.min(all);
        let now = by(sent_by(to), counted.sent).max(sent) - sent;
        let gone = by(lost_by(to), counted.lost).saturating_sub(lost).min(now);
        (sent, lost) = (sent + now, lost + gone);
        (slice.sent, slice.received) = (frames(now), frames(now - gone));
        if slice.received > 0 {
            (slice.min_delay_ns, slice.mean_delay_ns) = (ns(first.min(last)), ns((first + last) / 2.0));
        }
        let earliest = came.last().map_or(0.0, |came| came.moment_s);
        came.push(Came { moment_s: (to + last).max(earliest), frames: sent - lost, delay_s: last });
    }
    arrive(&mut slices, cut, &came);
    slices
}

/// What is back at a moment: the frames so far, and the delay of the last of them.
struct Came {
    moment_s: f64,
    frames: u64,
    delay_s: f64,
}

/// By arrival. What comes after the last slice is counted in it.
fn arrive(slices: &mut [Slice], cut: &Cut, came: &[Came]) {
    let (count, mut at, mut arrived) = (slices.len(), 0, 0);
    for (i, slice) in slices.iter_mut().enumerate() {
        let end_s = (i + 1) as f64 * cut.slice_s;
        let first = at;
        while came.get(at + 1).is_some_and(|next| next.moment_s <= end_s) {
            at += 1;
        }
        let by = match (came.get(at), came.get(at + 1)) {
            _ if i + 1 == count => came.last().map_or(0, |last| last.frames),
            (Some(last), Some(next)) if last.moment_s <= end_s => {
                let share = (end_s - last.moment_s) / (next.moment_s - last.moment_s).max(1e-12);
                last.frames + ((next.frames - last.frames) as f64 * share).floor() as u64
            }
            (Some(last), None) => last.frames,
            _ => 0,
        };
        slice.arrived = frames(by.max(arrived) - arrived);
        arrived = arrived.max(by);
        if slice.arrived > 0 {
            let delays = came.get(first..=(at + 1).min(came.len() - 1)).unwrap_or_default();
            slice.arrival_min_delay_ns = ns(delays.iter().map(|came| came.delay_s).fold(f64::INFINITY, f64::min));
        }
    }
}

fn pair(of: &[f64], i: usize) -> Option<[f64; 2]> {
    Some([*of.get(i)?, *of.get(i + 1)?])
}

fn frames(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn ns(seconds: f64) -> u32 {
    (seconds * 1e9).round() as u32
}

#[cfg(test)]
mod tests {
    use units::{Fps, FrameSize};

    use super::{super::SimSetup, *};
    use crate::{
        schema::timeline::{Party, Timeline},
        sim::SimDut,
        trial::{Purpose, TrialRecord, TrialSpec},
    };

    /// A trial by slices, and over time.
    fn trial(text: &str, load: f64, duration_s: f64) -> (TrialRecord, Timeline) {
        let setup: SimSetup = text.parse().unwrap();
        run(&mut setup.start(), load, duration_s)
    }

    fn run(dut: &mut SimDut, load: f64, duration_s: f64) -> (TrialRecord, Timeline) {
        let steady = TrialSpec::steady(FrameSize::MIN, Fps::new(load).unwrap(), duration_s, Purpose::Search);
        let record = dut.run(&TrialSpec { by_slices: true, ..steady });
        (record, dut.timeline().clone())
    }

    fn sum(timeline: &Timeline, of: fn(&Slice) -> u32) -> u64 {
        timeline.directions[0].iter().map(|slice| u64::from(of(slice))).sum()
    }

    /// The slices have the frames that the trial counted, by departure and by arrival.
    #[track_caller]
    fn adds_up((record, timeline): &(TrialRecord, Timeline)) {
        let counts = &record.directions[0];
        let sums = (sum(timeline, |s| s.sent), sum(timeline, |s| s.received), sum(timeline, |s| s.arrived));
        assert_eq!(sums, (counts.sent, counts.received, counts.received));
    }

    #[test]
    fn overload_shows_the_rate_and_the_full_queue() {
        for (load, queue, full_s) in [(4e6, 256, 85.3e-6), (9e6, 30_000, 10e-3)] {
            let both = trial(&format!("sim:capacity=3M,queue={queue}"), load, 0.1);
            adds_up(&both);
            let busy = both.0.evidence.unwrap().undisturbed.unwrap();
            assert!((busy.fps.get() / 3e6 - 1.0).abs() < 5e-4, "{busy:?}");
            let ends_at_s = f64::from(both.1.directions[0][990].min_delay_ns) * 1e-9;
            assert!((ends_at_s - full_s - 10e-6).abs() < 1e-6, "{ends_at_s}");
        }
    }

    #[test]
    fn a_buffer_that_takes_the_excess_shows_in_the_delay() {
        let growth = |load| {
            let both = trial("sim:capacity=1M,queue=100k", load, 0.1);
            adds_up(&both);
            let evidence = both.0.evidence.clone().unwrap();
            assert_eq!((evidence.lost, both.0.lost()), (0, 0));
            assert!(evidence.clean_s > 0.09, "{evidence:?}");
            evidence.delay.unwrap().growth
        };
        assert!(growth(0.99e6).abs() < 1e-4);
        assert!((growth(1.02e6) - 0.02).abs() < 1e-3);
    }

    #[test]
    fn whoever_is_away_sends_nothing_and_is_seen() {
        let both = trial("sim:capacity=3M,queue=64,tester-stalls=100%", 2e6, 0.1);
        adds_up(&both);
        let (record, timeline) = both;
        assert!((timeline.absences.len(), timeline.absences[0].who) == (1, Party::Tester));
        let length = timeline.absences[0].to_s - timeline.absences[0].from_s;
        assert!((length - 0.03).abs() < 1e-9, "{length}");
        assert_eq!((record.directions[0].sent, record.directions[0].skipped, record.lost()), (140_000, 60_000, 0));
        let evidence = record.evidence.unwrap();
        assert!((evidence.offered_fps.get() / 2e6 - 1.0).abs() < 1e-3 && evidence.aside_s >= 0.03, "{evidence:?}");
        // A trial as long as that has no frames.
        let (record, timeline) = trial("sim:capacity=3M,tester-stalls=100%", 2e6, 0.03);
        assert_eq!((record.directions[0].sent, sum(&timeline, |s| s.sent)), (0, 0));
    }

    #[test]
    fn what_is_lost_is_lost_in_its_slice() {
        let both = trial("sim:capacity=3M,accidents=100%:50,seed=9", 1e6, 0.1);
        adds_up(&both);
        let lossy = both.1.directions[0].iter().filter(|slice| slice.lost() > 0).count();
        assert!(both.0.lost() > 0 && lossy <= 2, "{lossy}");
        let stalls = trial("sim:capacity=3M,stalls=40/s:500,seed=9", 1e6, 0.1);
        adds_up(&stalls);
        let lossy = stalls.1.directions[0].iter().filter(|slice| slice.lost() > 0).count();
        assert!(stalls.0.lost() >= 500 && lossy <= 7 * stalls.0.lost() as usize / 500, "{lossy} {}", stalls.0.lost());
        let spread = trial("sim:capacity=3M,inversion=0.5M-2M:1%", 1e6, 0.1);
        adds_up(&spread);
        let lossy = spread.1.directions[0].iter().filter(|slice| slice.lost() > 0).count();
        assert!((300..1001).contains(&lossy), "{lossy}");
    }

    #[test]
    fn nothing_comes_out_of_a_dead_device() {
        let both = trial("sim:capacity=3M,dead=20ms-50ms", 1e6, 0.1);
        adds_up(&both);
        let slice_s = both.1.slice_s;
        let within = |(i, _): &(usize, &Slice)| (0.021..0.049).contains(&(*i as f64 * slice_s));
        let slices = both.1.directions[0].iter().enumerate().filter(within);
        let (arrived, received) = slices.fold((0, 0), |(a, r), (_, s)| (a + s.arrived, r + s.received));
        assert_eq!((arrived, received, both.0.lost()), (0, 0, 30_000));
    }

    #[test]
    fn what_waits_longer_than_the_sending_arrives_behind_it() {
        let both = trial("sim:capacity=10k,queue=200", 20e3, 0.1);
        adds_up(&both);
        let sending = (0.1 / both.1.slice_s).round() as usize;
        let behind: u32 = both.1.directions[0][sending..].iter().map(|slice| slice.arrived).sum();
        assert!((195..=205).contains(&behind), "{behind}");
    }

    #[test]
    fn without_delays_there_are_no_slices() {
        let (record, timeline) = trial("sim:capacity=3M,latency=0s", 1e6, 0.1);
        assert!(record.evidence.is_none() && timeline == Timeline::default());
    }
}
