//! Captures whose times do not only rise.

use super::*;

/// Of a record: the flow, the ticks of its first and last frame, its packets, and why it ended.
type Told = (u32, u64, u64, u64, EndReason);

fn told(ended: &mut EndedReader) -> Vec<Told> {
    let told = |r: &Record| {
        let i = (1..10).find(|&i| Key4::from_key(&r.key) == Some(four(i).key)).unwrap();
        (i, r.first / 1_000_000, r.last / 1_000_000, r.forward.packets, r.end.unwrap())
    };
    let mut all: Vec<_> = records(ended).iter().map(told).collect();
    all.sort_unstable_by_key(|&(i, first, ..)| (i, first));
    all
}

/// Lets time pass from tick to tick as a logger does that reads a capture.
fn pass(worker: &mut Worker<Heap>, packet: Packet4, ticks: std::ops::RangeInclusive<u64>) {
    for tick in ticks.step_by(100) {
        captured(worker, &[packet], &[tick]);
        worker.age(worker.latest(), 4096);
    }
}

#[test]
fn an_hour_back_ends_what_was_before_and_ageing_goes_on() {
    const HOUR: u64 = 3_600_000;
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    pass(&mut worker, four(1), HOUR..=HOUR + 5000);
    captured(&mut worker, &[four(2), four(3)], &[HOUR + 5000, HOUR + 5000]);
    // Flow 3 goes on an hour earlier, flow 4 begins there and falls silent.
    captured(&mut worker, &[four(3), four(4)], &[1000, 1000]);
    assert_eq!(worker.latest(), 1000);
    assert_eq!(told(&mut ended), [(3, HOUR + 5000, HOUR + 5000, 1, EndReason::Idle)]);
    pass(&mut worker, four(3), 1000..=20_000);
    let idle = EndReason::Idle;
    let wanted = [(1, HOUR, HOUR + 5000, 51, idle), (2, HOUR + 5000, HOUR + 5000, 1, idle), (4, 1000, 1000, 1, idle)];
    assert_eq!((told(&mut ended), reader.counts().flows), (wanted.to_vec(), 1));
    while !worker.flush(64) {}
    assert_eq!(told(&mut ended), [(3, 1000, 20_000, 192, EndReason::Forced)]);
}

#[test]
fn one_frame_of_the_far_future_stops_no_ageing() {
    const LATER: u64 = 2_400_000_000_000;
    let (mut worker, reader, mut ended) = small(TableFull::DropNew, true, 64);
    captured(&mut worker, &[four(1), four(2), four(3), four(2)], &[1000, 1000, LATER, 1100]);
    assert_eq!(worker.latest(), 1100);
    pass(&mut worker, four(2), 1200..=20_000);
    let wanted = [(1, 1000, 1000, 1, EndReason::Idle), (3, LATER, LATER, 1, EndReason::Idle)];
    assert_eq!((told(&mut ended), reader.counts().flows), (wanted.to_vec(), 1));
    // A wrong time in the middle of a flow makes records of its own, and the flow goes on.
    captured(&mut worker, &[four(2), four(2)], &[LATER, 20_100]);
    while !worker.flush(64) {}
    let idle = EndReason::Idle;
    let wanted = [(2, 1000, 20_000, 191, idle), (2, 20_100, 20_100, 1, EndReason::Forced), (2, LATER, LATER, 1, idle)];
    assert_eq!(told(&mut ended), wanted);
}

#[test]
fn a_flow_begins_with_its_earliest_frame() {
    let (mut worker, _, mut ended) = small(TableFull::DropNew, true, 64);
    captured(&mut worker, &[four(1), four(1), four(1), four(1)], &[1000, 940, 1200, 950]);
    while !worker.flush(64) {}
    assert_eq!(told(&mut ended), [(1, 940, 1200, 4, EndReason::Forced)]);
}
