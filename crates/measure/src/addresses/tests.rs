//! Tests of the searches for address capacity and learning rate (RFC 2889), on bridges written as functions.

use super::*;

fn fps(rate: f64) -> Fps {
    Fps::from_raw(rate)
}

/// A bridge that holds so many addresses and learns so many a second.
fn bridge(capacity: u64, rate: f64) -> impl Fn(Round) -> RoundCounts {
    move |round| {
        let in_time = (round.addresses as f64 * (rate / round.learning_fps.get()).min(1.0)) as u64;
        let known = round.addresses.min(capacity).min(in_time);
        let (tested, flooded) = (round.addresses, round.addresses - known);
        // What is flooded comes to the learning port, too.
        RoundCounts { learned: tested, tested, forwarded: tested, flooded, returned: 0 }
    }
}

fn run(goal: Goal, bridge: impl Fn(Round) -> RoundCounts) -> (End, Addresses) {
    let mut search = AddressSearch::new(goal, 3).unwrap();
    while let Some(round) = search.wanted() {
        search.report(RoundRecord::judge(round, bridge(round), None));
    }
    (search.ended().unwrap(), search.found())
}

fn capacity(most: u64, initial: u64) -> Goal {
    Goal::Capacity { most, initial, learning_fps: fps(1000.0) }
}

#[test]
fn the_capacity_is_found_to_the_address() {
    for holds in [1, 2, 3, 255, 1000, 4095, 16_383, 65_534] {
        for initial in [1, 512, 65_535] {
            let (end, found) = run(capacity(65_535, initial), bridge(holds, 1e9));
            assert_eq!((end, found.addresses), (End::Found, Some(holds)), "{initial}");
            assert_eq!(found.overflow_addresses, Some(holds + 1));
            assert!(found.rounds.len() <= 18, "{}", found.rounds.len());
        }
    }
}

#[test]
fn rounds_are_those_of_the_standard() {
    let (_, found) = run(capacity(1000, 100), bridge(700, 1e9));
    let offered: Vec<_> = found.rounds.iter().take(6).map(|r| r.round.addresses).collect();
    assert_eq!(offered, [100, 1000, 550, 775, 662, 718], "N := LOW + (HIGH - LOW) / 2");
}

#[test]
fn all_and_none_are_told() {
    let (end, found) = run(capacity(1000, 1), bridge(5000, 1e9));
    assert_eq!((end, found.addresses, found.overflow_addresses), (End::AtMaximum, Some(1000), None));
    let (end, found) = run(capacity(1000, 1), bridge(0, 1e9));
    assert_eq!((end, found.addresses, found.overflow_addresses), (End::BelowMinimum, None, Some(1)));
    assert!(AddressSearch::new(capacity(0, 1), 3).is_none());
}

#[test]
fn the_rate_is_found_to_the_precision() {
    let goal = |initial| Goal::Rate { addresses: 1000, most_fps: fps(1e6), initial_fps: fps(initial), precision: 0.01 };
    for initial in [50.0, 20_000.0, 1e6] {
        let (end, found) = run(goal(initial), bridge(1000, 12_345.0));
        let rate = found.learning_fps.unwrap().get();
        assert!(end == End::Found && rate <= 12_345.0 && rate > 12_345.0 * 0.99, "{end:?} {rate}");
        assert!(found.overflow_fps.unwrap().get() > 12_345.0);
    }
    let (end, found) = run(goal(50.0), bridge(1000, 1e9));
    assert_eq!((end, found.learning_fps), (End::AtMaximum, Some(fps(1e6))));
    let (end, _) = run(goal(50.0), bridge(999, 1e9));
    assert_eq!(end, End::BelowMinimum, "more addresses than it holds are learned at no rate");
    let none = Goal::Rate { addresses: 0, most_fps: fps(1e6), initial_fps: fps(1.0), precision: 0.01 };
    assert!(AddressSearch::new(none, 3).is_none());
}

#[test]
fn a_round_is_judged_by_what_was_sent() {
    let round = Round { addresses: 10, learning_fps: fps(100.0) };
    let good = RoundCounts { learned: 10, tested: 10, forwarded: 10, flooded: 0, returned: 0 };
    let judge =
        |counts, disturbed: Option<&str>| RoundRecord::judge(round, counts, disturbed.map(str::to_owned)).verdict;
    assert_eq!(judge(good, None), RoundVerdict::Held);
    assert_eq!(judge(good, Some("away")), RoundVerdict::Held, "all came all the same");
    assert_eq!(judge(RoundCounts { learned: 9, ..good }, None), RoundVerdict::Invalid);
    assert_eq!(judge(RoundCounts { tested: 9, forwarded: 9, ..good }, None), RoundVerdict::Invalid);
    assert_eq!(judge(RoundCounts { forwarded: 9, ..good }, None), RoundVerdict::Overflowed);
    assert_eq!(judge(RoundCounts { forwarded: 9, ..good }, Some("away")), RoundVerdict::Invalid);
    assert_eq!(judge(RoundCounts { flooded: 1, ..good }, None), RoundVerdict::Overflowed);
    assert_eq!(judge(RoundCounts { flooded: 1, ..good }, Some("away")), RoundVerdict::Invalid);
}

#[test]
fn rounds_that_cannot_be_trusted_end_it() {
    let mut search = AddressSearch::new(capacity(100, 1), 3).unwrap();
    let mut asked = 0;
    while let Some(round) = search.wanted() {
        asked += 1;
        search.report(RoundRecord::judge(round, RoundCounts::default(), None));
    }
    assert_eq!((asked, search.ended()), (4, Some(End::Inconclusive)));
}
