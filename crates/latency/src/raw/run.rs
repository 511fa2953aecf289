//! Frames one by one: sent, awaited, timed.

use std::{
    io,
    time::{Duration, Instant},
};

use packet::Clock;

use super::{
    frame::Frame,
    series::{Series, BACKGROUND, GONE},
    way::{Stamped, Way},
};
pub use super::{
    options::{RawOptions, RxMode, TxMode},
    series::RawMeasured,
};
use crate::tally::Seen;

/// Polls between two looks at the clock while a frame is awaited.
const POLLS: u32 = 32;
/// How long a port that takes no frame is left alone.
const REFUSED: Duration = Duration::from_millis(1);

/// Times frames from before they are handed over to when they are received at the other end, one after the other.
///
/// # Errors
///
/// `TimedOut` where no frame came within three seconds; `OutOfMemory`.
pub fn send_to_receive(
    way: &mut impl Way,
    clock: &impl Clock,
    frame: &mut Frame,
    options: &RawOptions,
    go_on: &dyn Fn() -> bool,
) -> io::Result<RawMeasured> {
    let mut run = Series::new(clock, options)?;
    let mut copy = vec![0; super::frame::LONGEST];
    let mut number = 0;
    loop {
        run.begin_if_warm();
        if let Some(ended) = run.ended(go_on)? {
            return Ok(run.end(ended));
        }
        run.background(way, frame);
        number += 1;
        frame.number(number);
        run.tally.sent(number);
        let loaded = options.tx == TxMode::Frame || way.load(frame.bytes());
        let start = clock.now();
        let taken = loaded && (options.tx == TxMode::Preloaded || way.load(frame.bytes())) && way.fire();
        if !taken {
            run.refused += 1;
            run.tally.gave_up(number);
            way.rest();
            std::thread::sleep(REFUSED);
            continue;
        }
        let limit = run.ticks(run.patience.limit());
        let mut polls = 0;
        // Until its frame is there, whatever else comes.
        let came = loop {
            let held = way.poll();
            if held > 0 {
                let mut mine = None;
                for n in 0..held {
                    let received = match options.rx {
                        RxMode::InPlace => way.frame(n),
                        RxMode::Copy => copied(way.frame(n), &mut copy),
                    };
                    if frame.number_of(received) == Some(number) {
                        mine = Some(n);
                    }
                }
                let now = clock.now();
                let damaged = mine.is_some_and(|n| !frame.is_whole(way.frame(n)));
                for n in 0..held {
                    match frame.number_of(way.frame(n)) {
                        None => run.tally.foreign(),
                        Some(BACKGROUND) => {}
                        Some(number) => {
                            if run.tally.came(number) == Seen::Late {
                                // The way is longer than was thought.
                                run.patience.late();
                                run.last = Instant::now();
                            }
                        }
                    }
                }
                way.release();
                if mine.is_some() {
                    if damaged {
                        run.tally.damaged();
                    }
                    break Some(now.saturating_sub(start));
                }
            }
            polls += 1;
            if polls % POLLS == 0 && (clock.now().saturating_sub(start) > limit || !go_on()) {
                break None;
            }
        };
        match came {
            Some(clocks) => {
                let stamped = way.stamped();
                run.add(clocks, stamped);
            }
            None => run.tally.gave_up(number),
        }
        way.rest();
    }
}

/// Times frames from when they are there to when they are handed over again: what a forwarder of frames costs. `feed` is called
/// before each frame is awaited, with the number of frames so far; it may send one.
///
/// # Errors
///
/// `TimedOut` where no frame came within three seconds; `OutOfMemory`.
pub fn receive_to_send(
    way: &mut impl Way,
    clock: &impl Clock,
    frame: &Frame,
    options: &RawOptions,
    feed: &mut dyn FnMut(u64),
    go_on: &dyn Fn() -> bool,
) -> io::Result<RawMeasured> {
    let mut run = Series::new(clock, options)?;
    let mut copy = vec![0; super::frame::LONGEST];
    let (mut number, mut fed) = (0, 0);
    loop {
        run.begin_if_warm();
        if let Some(ended) = run.ended(go_on)? {
            return Ok(run.end(ended));
        }
        feed(fed);
        fed += 1;
        // Each is answered with a frame that is ready.
        let loaded = options.tx == TxMode::Frame || way.load(frame.bytes());
        let mut polls = 0;
        let (start, held) = loop {
            let start = clock.now();
            let held = way.poll();
            if held > 0 {
                break (start, held);
            }
            polls += 1;
            if polls % POLLS == 0 && (run.last.elapsed() > GONE / 2 || !go_on()) {
                break (start, 0);
            }
        };
        if held == 0 {
            // Looked at above, and fed again.
            if run.last.elapsed() <= GONE {
                std::thread::sleep(Duration::from_millis(1));
            }
            continue;
        }
        for n in 0..held {
            run.saw_bytes(way.frame(n).len());
        }
        let mut taken = 0;
        match (options.tx, options.rx) {
            (TxMode::Frame, RxMode::InPlace) => taken = way.pass(),
            (TxMode::Frame, RxMode::Copy) => {
                for n in 0..held {
                    let received = copied(way.frame(n), &mut copy);
                    taken += usize::from(way.load(received) && way.fire());
                }
            }
            (TxMode::Preloaded, rx) => {
                if rx == RxMode::Copy {
                    std::hint::black_box(copied(way.frame(0), &mut copy));
                }
                taken = usize::from(loaded && way.fire());
                for _ in 1..held {
                    taken += usize::from(way.load(frame.bytes()) && way.fire());
                }
            }
        }
        let took = clock.now().saturating_sub(start);
        way.release();
        for n in 0..held {
            number += 1;
            run.tally.sent(number);
            match n < taken {
                true => {
                    run.tally.came(number);
                }
                false => {
                    run.refused += 1;
                    run.tally.gave_up(number);
                }
            }
        }
        // Each frame of a burst left with the last one.
        (0..taken).for_each(|_| run.add(took, Stamped::Unused));
        way.rest();
    }
}

/// The bytes of a received frame, copied out.
#[inline]
fn copied<'a>(received: &[u8], copy: &'a mut [u8]) -> &'a [u8] {
    let length = received.len().min(copy.len());
    copy[..length].copy_from_slice(&received[..length]);
    &copy[..length]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use packet::{
        heap::{HeapPool, HeapWire},
        Buffer, Burst, MacAddr, Rx, Tx,
    };

    use super::{
        super::{series::LOOK, way::Queues},
        *,
    };
    use crate::{pingpong::Ended, tally::Counts, testing::Wall};

    fn frame() -> Frame {
        Frame::new(128, MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), 9)
    }

    fn few(samples: u64) -> RawOptions {
        RawOptions { warm_ups: 10, samples, time: Duration::from_secs(30), keep: 5, ..RawOptions::default() }
    }

    fn clock() -> Wall {
        Wall(Instant::now())
    }

    /// A cable whose end does something to each frame of a number: it may take it away.
    struct Odd<F: FnMut(u64, &mut Burst<packet::heap::HeapBuf>)> {
        wire: HeapWire,
        act: F,
        n: u64,
    }

    impl<F: FnMut(u64, &mut Burst<packet::heap::HeapBuf>)> Rx for Odd<F> {
        type Buf = packet::heap::HeapBuf;
        fn rx(&mut self, burst: &mut Burst<Self::Buf>) -> usize {
            let mut came = Burst::new();
            if self.wire.rx(&mut came) > 0 {
                self.n += 1;
            }
            (self.act)(self.n, &mut came);
            let n = came.len();
            burst.extend(came);
            n
        }
    }

    #[test]
    fn each_mode_times_each_frame() {
        for tx in [TxMode::Frame, TxMode::Preloaded] {
            for rx in [RxMode::Copy, RxMode::InPlace] {
                let pool = HeapPool::new(4, 2048);
                let (near, far) = HeapWire::pair(4);
                let mut way = Queues::new(far, near, pool.clone(), |_| ());
                let options = RawOptions { tx, rx, ..few(300) };
                let measured = send_to_receive(&mut way, &clock(), &mut frame(), &options, &|| true).unwrap();
                assert_eq!((measured.times.all.count(), measured.ended.clone()), (300, Ended::Done));
                let counts = measured.counts;
                assert_eq!(
                    (counts.sent, counts.replied, counts.lost, counts.foreign, counts.damaged),
                    (300, 300, 0, 0, 0)
                );
                assert_eq!((measured.clocks.len(), measured.refused), (5, 0));
                assert!(measured.clocks.iter().all(|&ns| ns > 0 && ns < 1_000_000_000));
                drop(way);
                assert_eq!(pool.in_use(), 0);
            }
        }
    }

    #[test]
    fn lost_late_foreign_and_damaged_frames_are_counted_and_it_goes_on() {
        let pool = HeapPool::new(16, 2048);
        let (near, wire) = HeapWire::pair(4);
        let mut late = None;
        let strange = pool.frame(&[7; 64]).unwrap();
        let mut strange = Some(strange);
        let act = |n: u64, came: &mut Burst<packet::heap::HeapBuf>| {
            if came.is_empty() {
                return;
            }
            match n {
                5 => late = came.pop(),
                6 => came.extend(late.take()),
                7 => came.clear(),
                8 => came[0].data_mut()[100] ^= 1,
                9 => came.extend(strange.take()),
                _ => {}
            }
        };
        let mut way = Queues::new(Odd { wire, act, n: 0 }, near, pool.clone(), |_| ());
        let options = RawOptions { warm_ups: 1, ..few(12) };
        let measured = send_to_receive(&mut way, &clock(), &mut frame(), &options, &|| true).unwrap();
        let counts = measured.counts;
        assert_eq!(measured.times.all.count(), 12);
        assert_eq!((counts.lost, counts.late, counts.foreign, counts.damaged), (2, 1, 1, 1), "{counts:?}");
        drop(way);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn a_way_that_falls_silent_before_the_end_is_gone_and_one_that_loses_a_frame_is_not() {
        // A thread that was away for long is patient for thirty times as long: it is given the time.
        let times = [Duration::from_millis(800), Duration::from_secs(20)];
        for (silent_for_good, ended) in [(true, false), (false, true)] {
            let is_as_expected = |time: &Duration| {
                let pool = HeapPool::new(64, 2048);
                let (near, wire) = HeapWire::pair(4);
                let (begun, mut took) = (Instant::now(), false);
                let act = |_: u64, came: &mut Burst<packet::heap::HeapBuf>| {
                    let over = begun.elapsed() > Duration::from_millis(300) && !came.is_empty();
                    if over && (silent_for_good || !took) {
                        took = true;
                        came.clear();
                    }
                };
                let mut way = Queues::new(Odd { wire, act, n: 0 }, near, pool.clone(), |_| ());
                let options = RawOptions { time: *time, keep: 0, ..few(u64::MAX) };
                let measured = send_to_receive(&mut way, &clock(), &mut frame(), &options, &|| true).unwrap();
                assert!(measured.counts.lost >= 1 && measured.counts.replied > 100, "{:?}", measured.counts);
                (measured.ended == Ended::Done) == ended
            };
            assert!(times.iter().any(is_as_expected), "silent for good: {silent_for_good}");
        }
    }

    #[test]
    fn a_background_takes_the_same_way_and_is_not_timed() {
        let pool = HeapPool::new(64, 2048);
        let (near, far) = HeapWire::pair(64);
        let mut way = Queues::new(far, near, pool.clone(), |_| ());
        let options = RawOptions { background: Some(50_000.0), time: Duration::from_millis(200), ..few(u64::MAX) };
        let options = RawOptions { warm_ups: 1, keep: 0, ..options };
        let measured = send_to_receive(&mut way, &clock(), &mut frame(), &options, &|| true).unwrap();
        let background = measured.background.unwrap();
        assert!(background > 1_000.0 && background < 60_000.0, "{background}");
        assert_eq!((measured.counts.foreign, measured.counts.lost), (0, 0));
        assert_eq!(measured.times.all.count(), measured.counts.replied);
        drop(way);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn it_ends_when_nothing_comes_when_it_is_asked_to_and_when_it_is_precise() {
        let pool = HeapPool::new(2, 2048);
        let (near, _far) = HeapWire::pair(4);
        let (_other, silent) = HeapWire::pair(4);
        let mut way = Queues::new(silent, near, pool.clone(), |_| ());
        let nothing = send_to_receive(&mut way, &clock(), &mut frame(), &few(10), &|| true).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::TimedOut);
        let (near, far) = HeapWire::pair(4);
        let mut way = Queues::new(far, near, HeapPool::new(2, 2048), |_| ());
        let asked = Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 50
        };
        let stopped = send_to_receive(&mut way, &clock(), &mut frame(), &few(1000), &go_on).unwrap();
        assert_eq!(stopped.ended, Ended::Stopped);
        assert!(stopped.times.all.count() > 10, "what was measured is kept");
        let soon = send_to_receive(&mut way, &clock(), &mut frame(), &few(1000), &|| false).unwrap();
        assert_eq!((soon.times.all.count(), soon.counts), (0, Counts::default()), "nothing of a warm-up is a figure");
        let precise = RawOptions { precision: Some(100.0), ..few(1_000_000) };
        let measured = send_to_receive(&mut way, &clock(), &mut frame(), &precise, &|| true).unwrap();
        assert_eq!(measured.ended, Ended::Precise);
        assert!(measured.times.all.count() % LOOK == 0 && measured.times.all.count() >= 10_000);
    }

    #[test]
    fn frames_are_forwarded_as_each_mode_says() {
        for tx in [TxMode::Frame, TxMode::Preloaded] {
            for rx in [RxMode::Copy, RxMode::InPlace] {
                let pool = HeapPool::new(8, 2048);
                let (mut source, rx_end) = HeapWire::pair(4);
                let (tx_end, mut sink) = HeapWire::pair(4);
                let mut way = Queues::new(rx_end, tx_end, pool.clone(), |_| ());
                let (mut out, mut came) = (Vec::new(), Burst::new());
                let mut feed = |n: u64| {
                    sink.rx(&mut came);
                    out.extend(came.drain(..).map(|buffer| buffer.data().to_vec()));
                    let mut burst: Burst<_> = pool.frame(&[n as u8; 70]).into_iter().collect();
                    source.tx(&mut burst);
                };
                let options = RawOptions { tx, rx, warm_ups: 1, ..few(20) };
                let measured = receive_to_send(&mut way, &clock(), &frame(), &options, &mut feed, &|| true).unwrap();
                assert_eq!((measured.times.all.count(), measured.counts.replied, measured.counts.lost), (20, 20, 0));
                assert!(out.len() >= 20);
                let expected = if tx == TxMode::Frame { vec![3; 70] } else { frame().bytes().to_vec() };
                assert_eq!(out[3], expected, "{tx:?} {rx:?}");
            }
        }
    }

    #[test]
    fn a_port_that_takes_nothing_refuses() {
        let pool = HeapPool::new(8, 2048);
        let (mut source, rx_end) = HeapWire::pair(4);
        let (full, _sink) = HeapWire::pair(0);
        let mut way = Queues::new(rx_end, full, pool.clone(), |_| ());
        let mut feed = |_| {
            let mut burst: Burst<_> = pool.frame(&[1; 70]).into_iter().collect();
            source.tx(&mut burst);
        };
        let refused = receive_to_send(&mut way, &clock(), &frame(), &few(5), &mut feed, &|| true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        let refused = send_to_receive(&mut way, &clock(), &mut frame(), &few(5), &|| true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    }
}
