//! Tests of the simulated device: its text form and each of its behaviours.

use units::{Fps, FrameSize, Nanos};

use super::*;
use crate::{
    shape::{LoadShape, Outage},
    trial::{DirectionCounts, Purpose, TrialRecord, TrialSpec},
};

fn setup(text: &str) -> SimSetup {
    text.parse().unwrap()
}

fn trial(dut: &mut SimDut, load: f64, duration_s: f64) -> TrialRecord {
    let load_fps = Fps::new(load).unwrap();
    dut.run(&TrialSpec::steady(FrameSize::MIN, load_fps, duration_s, Purpose::Single))
}

#[test]
fn a_line_of_text_says_it_all_and_survives_itself() {
    let text = "sim:capacity=12.5M,queue=1024,onset=1%,stalls=0.05/s:2000+2/s:20,inversion=2M-3M:0.1%,drift=-0.1%/min,\
                dead=10s-12s,latency=25us,recovery=50ms,accidents=10%:50,tester=14M,tester-stalls=5%,seed=7";
    let all = setup(text);
    assert_eq!((all.placements[0].capacity, all.queue, all.onset, all.seed), (12.5e6, 1024, 0.01, 7));
    assert_eq!(all.stalls, [Stalls { rate: 0.05, frames: 2000 }, Stalls { rate: 2.0, frames: 20 }]);
    assert_eq!(all.inversion, Some(Inversion { band: (2e6, 3e6), loss: 0.001 }));
    assert_eq!((all.drift_per_min, all.dead, all.latency), (-0.001, Some((10.0, 12.0)), Nanos(25_000)));
    assert_eq!((all.recovery_s, all.accidents, all.tester_max, all.tester_stalls), (0.05, (0.1, 50), 14e6, 0.05));
    assert_eq!(setup(&all.to_string()), all);
    assert_eq!(setup("sim"), SimSetup::new(10e6, 1));
    assert_eq!(setup("sim: seed=3 , drift=+1%/min").drift_per_min, 0.01);
}

#[test]
fn bad_text_names_the_key_the_value_and_what_is_legal() {
    let errors = [
        "10M",
        "sim:capacity=0",
        "sim:capacity=10Mbps",
        "sim:queue=1.5",
        "sim:queue=2G",
        "sim:onset=100%",
        "sim:stalls=0.05:2000",
        "sim:stalls=9k/s:1",
        "sim:inversion=3M-2M:1%",
        "sim:drift=-1%",
        "sim:drift=-100%/min",
        "sim:dead=5s-5s",
        "sim:latency=fast",
        "sim:accidents=11:5",
        "sim:tester=0",
        "sim:seed=-1",
        "sim:seed=1,seed=2",
        "sim:speed=1",
        "sim:seed",
    ]
    .map(|text| text.parse::<SimSetup>().unwrap_err().to_string())
    .join("\n");
    insta::assert_snapshot!(errors, @r"
    dut = 10M: must be like sim:capacity=10M,queue=1024,seed=7
    sim.capacity = 0: must be frames/s above zero, such as 10M
    sim.capacity = 10Mbps: must be frames/s above zero, such as 10M
    sim.queue = 1.5: must be a whole number of frames up to 1G, such as 1024
    sim.queue = 2G: must be a whole number of frames up to 1G, such as 1024
    sim.onset = 100%: must be a share of the capacity below 100%, such as 1%
    sim.stalls = 0.05:2000: must be RATE/s:FRAMES, such as 0.05/s:2000; several joined by +
    sim.stalls = 9k/s:1: must be RATE/s:FRAMES, such as 0.05/s:2000; several joined by +
    sim.inversion = 3M-2M:1%: must be LOW-HIGH:LOSS, such as 2M-3M:0.1%
    sim.drift = -1%: must be a change per minute above -100%, such as -0.1%/min
    sim.drift = -100%/min: must be a change per minute above -100%, such as -0.1%/min
    sim.dead = 5s-5s: must be FROM-TO in virtual time, such as 10s-12s or 0-5s
    sim.latency = fast: must be a time, such as 10us
    sim.accidents = 11:5: must be PROBABILITY:FRAMES of a trial, such as 10%:50
    sim.tester = 0: must be the most frames/s the tester offers, such as 14M
    sim.seed = -1: must be a whole number
    sim.seed = 2: is given twice
    sim.speed = 1: is not a key of a simulated DUT: must be capacity, queue, onset, stalls, inversion, drift, dead, latency, recovery, accidents, tester, tester-stalls, seed
    sim.seed = : must be a whole number
    ");
}

#[test]
fn overload_beyond_the_queue_is_lost() {
    let mut dut = setup("sim:capacity=1M,queue=1000").start();
    assert_eq!(trial(&mut dut, 1.001e6, 1.0).lost(), 0);
    assert_eq!(trial(&mut dut, 1.002e6, 1.0).lost(), 1000);
    assert_eq!(trial(&mut dut, 2e6, 2.0).lost(), 1_999_000);
}

#[test]
fn a_soft_onset_loses_some_below_the_capacity_and_all_of_the_excess_far_above() {
    let mut dut = setup("sim:capacity=1M,onset=1%").start();
    let mut loss = |load: f64| trial(&mut dut, load, 10.0).loss_ratio();
    assert_eq!(loss(0.8e6), 0.0);
    assert!((loss(0.99e6) / 0.01 - 0.316).abs() < 0.02, "softplus(-1) of the onset");
    assert!((loss(1e6) / 0.01 - 0.693).abs() < 0.02);
    assert!((loss(2e6) - 0.5).abs() < 0.001);
}

#[test]
fn stalls_come_at_their_rate_and_lose_their_frames() {
    let mut dut = setup("sim:capacity=10M,stalls=0.05/s:2000,seed=5").start();
    let lost: Vec<u64> = (0..2000).map(|_| trial(&mut dut, 1e6, 1.0).lost()).collect();
    assert!(lost.iter().all(|l| l % 2000 == 0));
    let lossy = lost.iter().filter(|&&l| l > 0).count();
    assert!((70..130).contains(&lossy), "{lossy} of 2000 trials of a second, 98 expected");
}

#[test]
fn inversion_drift_and_death_happen_where_they_are_said_to() {
    let mut dut = setup("sim:capacity=10M,inversion=2M-3M:0.1%").start();
    assert_eq!([1.9e6, 2.5e6, 3.1e6].map(|l| trial(&mut dut, l, 1.0).lost()), [0, 2500, 0]);

    let mut dut = setup("sim:capacity=1M,queue=0,drift=-1%/min").start();
    assert_eq!(trial(&mut dut, 1e6, 60.0).lost(), 300_000, "half a percent on average");
    dut.wait(60.0);
    assert_eq!(trial(&mut dut, 0.975e6, 1.0).lost(), 0);
    assert!(trial(&mut dut, 0.985e6, 1.0).lost() > 0);

    let mut dut = setup("sim:capacity=1M,dead=1s-3s").start();
    let lost = [(); 4].map(|()| trial(&mut dut, 0.5e6, 1.0).lost());
    assert_eq!(lost, [0, 500_000, 500_000, 0]);
    assert_eq!(trial(&mut setup("sim:capacity=1M,dead=0s-0.5s").start(), 0.5e6, 1.0).lost(), 250_000);
}

/// A trial of some shape.
fn shaped(text: &str, shape: LoadShape, load: f64, duration_s: f64) -> TrialRecord {
    let load_fps = Fps::new(load).unwrap();
    let spec = TrialSpec::steady(FrameSize::MIN, load_fps, duration_s, Purpose::Single);
    setup(text).start().run(&TrialSpec { shape, ..spec })
}

#[test]
fn a_burst_finds_the_queue() {
    // At twice the capacity, half of a burst is forwarded while it comes: 2048 frames fill a queue of 1024.
    let text = "sim:capacity=5M,queue=1024";
    let burst = |frames: u64| shaped(text, LoadShape::Burst { frames }, 10e6, frames as f64 / 10e6);
    assert_eq!([2048, 2049, 2050, 3048].map(|n| burst(n).lost()), [0, 1, 1, 500]);
    let lossy = burst(3048);
    let last = lossy.directions[0].last_lost.unwrap();
    assert_eq!((last.sequence, lossy.violations.len()), (3047, 0));
    assert!((last.departed_s - 304.7e-6).abs() < 1e-9);
}

#[test]
fn what_comes_too_late_is_lost_and_in_the_way_of_the_next() {
    let burst = |frames: u64, drain_s: f64| {
        let spec = TrialSpec::steady(FrameSize::MIN, Fps::new(10e6).unwrap(), frames as f64 / 10e6, Purpose::Single);
        TrialSpec { shape: LoadShape::Burst { frames }, drain_s, ..spec }
    };
    // Of a million frames a tenth is forwarded while they come, the rest in 0.9 s.
    let mut dut = setup("sim:capacity=1M,queue=1M").start().with_residual(0.1);
    assert_eq!(dut.run(&burst(1_000_000, 0.8)).lost(), 0);
    let mut dut = setup("sim:capacity=1M,queue=1M").start().with_residual(0.1);
    assert_eq!(dut.run(&burst(1_000_000, 0.0)).lost(), 800_000);
    dut.wait(0.1);
    assert_eq!(dut.run(&burst(10_000, 0.0)).lost(), 10_000, "behind 800,000 others");
    dut.wait(0.8);
    assert_eq!(dut.run(&burst(10_000, 0.0)).lost(), 0);
}

#[test]
fn bursts_find_what_the_ones_before_left() {
    let bursts = |frames, load| {
        let shape = LoadShape::Bursts { frames, burst_fps: Fps::new(10e6).unwrap() };
        shaped("sim:capacity=5M,queue=1024", shape, load, 1.0)
    };
    // The queue is empty again before the next burst.
    assert_eq!([2000, 2048, 3048].map(|n| bursts(n, 1e6).lost()), [0, 0, 328 * 500]);
    // More on average than is forwarded: what is over is lost in the end.
    let over = bursts(100, 6e6);
    // But for the queue, and counted to the end of the last burst, 6.7 us before the end of the second.
    assert_eq!(over.lost(), 1_000_000 - 1024 + 34);
    assert!(over.directions[0].last_lost.unwrap().departed_s > 0.99);
    let delays = bursts(1000, 1e6).directions[0].latency.clone().unwrap();
    assert!((110_000 - 2_000..=110_000).contains(&delays.max_ns), "500 frames wait 100 us: {}", delays.max_ns);
}

#[test]
fn a_step_down_ends_the_loss_when_the_device_has_recovered() {
    let step = |text: &str, load: f64| {
        let shape = LoadShape::Step { step_s: 60.0, then_fps: Fps::new(load / 2.0).unwrap() };
        shaped(text, shape, load, 70.0).directions[0].clone()
    };
    let after = |d: &DirectionCounts| d.last_lost.map(|l| l.departed_s - 60.0);
    let slow = step("sim:capacity=1M,recovery=50ms", 1.1e6);
    assert_eq!(slow.intended, 66_000_000 + 5_500_000);
    assert_eq!(slow.lost, 60 * 100_000 - 256 + 27_500);
    assert!((after(&slow).unwrap() - 0.05).abs() < 2e-6);
    let outage = slow.outage.unwrap();
    assert_eq!((outage.lost, outage.from_s), (27_500, 60.00001));
    assert!((outage.to_s.unwrap() - 60.05001).abs() < 1e-9);
    let quick = step("sim:capacity=1M", 1.1e6);
    assert!(after(&quick).unwrap() < 0.0 && after(&quick).unwrap() > -1e-5);
    assert_eq!(step("sim:capacity=2M,recovery=50ms", 1.1e6).last_lost, None, "never overloaded");
    assert!(after(&step("sim:capacity=0.5M", 1.1e6)).unwrap() > 9.999, "never recovers");
    let dies = step("sim:capacity=1M,dead=62s-63s", 1.1e6);
    assert!((after(&dies).unwrap() - 3.0).abs() < 2e-6);
    assert_eq!(dies.outage.unwrap().lost, 550_000);
}

#[test]
fn the_longest_outage_is_when_it_is_dead() {
    let run = |text: &str| trial(&mut setup(text).start(), 1e6, 10.0).directions[0].clone();
    let dead = run("sim:capacity=2M,dead=2s-3.5s").outage.unwrap();
    assert_eq!((dead.lost, dead.from_s, dead.to_s), (1_500_000, 2.00001, Some(3.50001)));
    let never = run("sim:capacity=2M,dead=0s-99s");
    assert_eq!(never.outage.unwrap(), Outage { lost: 10_000_000, from_s: 0.0, to_s: None });
    assert_eq!(never.last_lost.unwrap().sequence, 9_999_999);
    assert_eq!(run("sim:capacity=2M").outage, None);
    assert_eq!(run("sim:capacity=0.3M,queue=0").outage.unwrap().lost, 3, "three of ten pass");
    let accident = run("sim:capacity=2M,accidents=100%:50");
    assert_eq!((accident.outage.unwrap().lost, accident.last_lost.is_some()), (accident.lost, true));
}

#[test]
fn windows_add_up_to_the_whole() {
    let windows = |text: &str, window_s| {
        let mut spec = TrialSpec::steady(FrameSize::MIN, Fps::new(1e6).unwrap(), 60.0, Purpose::Single);
        spec.window_s = Some(window_s);
        let d = setup(text).start().run(&spec).directions[0].clone();
        assert_eq!(d.windows.iter().map(|w| w.received).sum::<u64>(), d.received, "{text}");
        assert_eq!(d.windows.iter().map(|w| w.missing).sum::<u64>(), d.lost, "{text}");
        assert!(d.windows.windows(2).all(|w| w[0].to_s == w[1].from_s));
        d
    };
    let dead = windows("sim:capacity=2M,dead=2s-3.5s", 1.0);
    assert_eq!(dead.windows.len(), 60);
    let seen: Vec<_> = dead.windows[1..5].iter().map(|w| (w.received, w.missing, w.min_ns)).collect();
    assert_eq!(seen, [(1_000_000, 0, 10_000), (0, 1_000_000, 0), (500_000, 500_000, 10_000), (1_000_000, 0, 10_000)]);
    // The capacity falls below the load in the middle of the trial.
    let drift = windows("sim:capacity=1.01M,queue=64,drift=-2%/min", 10.0);
    let missing: Vec<_> = drift.windows.iter().map(|w| w.missing > 0).collect();
    assert_eq!(missing, [false, false, false, true, true, true]);
    assert!(drift.windows[5].p50_ns > drift.windows[0].p50_ns);
    let whole = drift.latency.unwrap();
    assert_eq!(whole.max_ns, drift.windows.iter().map(|w| w.max_ns).max().unwrap());
    windows("sim:capacity=1M,onset=1%,stalls=2/s:50,accidents=50%:9", 0.7);
    windows("sim:capacity=0.4M", 120.0);
}

#[test]
fn delays_follow_the_queue() {
    let mut dut = setup("sim:capacity=1M,queue=1000,latency=10us").start();
    let latency = |record: TrialRecord| record.directions[0].latency.clone().unwrap();
    let low = latency(trial(&mut dut, 0.1e6, 1.0));
    assert_eq!((low.min_ns, low.p50_ns, low.frames), (10_000, 10_000, 100_000));
    let near = latency(trial(&mut dut, 0.95e6, 1.0));
    assert!(near.p50_ns > low.p50_ns && near.p99_ns < 110_000, "{near:?}");
    let over = latency(trial(&mut dut, 2e6, 1.0));
    assert_eq!((over.p50_ns, over.max_ns), (1_010_000, 1_010_000), "a full queue takes a millisecond");
    assert_eq!(over.histogram.iter().map(|b| b.1).sum::<u64>(), over.frames);

    let mut dut = setup("sim:capacity=1M,queue=1000,stalls=1000/s:1,latency=10us").start();
    assert!(latency(trial(&mut dut, 0.5e6, 1.0)).p99_ns > 900_000);
    assert_eq!(trial(&mut setup("sim:dead=0s-9s").start(), 1e6, 1.0).directions[0].latency, None);
}
