use units::{Fps, FrameSize, Nanos};

use super::*;
use crate::trial::{Purpose, TrialRecord, TrialSpec};

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
    sim.speed = 1: is no key of a simulated DUT: capacity, queue, onset, stalls, inversion, drift, dead, latency, recovery, accidents, tester, tester-stalls, seed
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

#[test]
fn a_burst_finds_the_queue() {
    // At twice the capacity, half of a burst is forwarded while it comes: 2048 frames fill a queue of 1024.
    let mut dut = setup("sim:capacity=5M,queue=1024").start();
    let line = Fps::new(10e6).unwrap();
    assert_eq!(dut.burst(FrameSize::MIN, 2048, line).lost(), 0);
    assert_eq!(dut.burst(FrameSize::MIN, 3048, line).lost(), 500);
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

#[test]
fn recovery_ends_with_the_last_frame_lost() {
    let size = FrameSize::MIN;
    let run = |text: &str, overload: f64| setup(text).start().recovery(size, Fps::new(overload).unwrap(), 60.0, 10.0);
    let slow = run("sim:capacity=1M,recovery=50ms", 1.1e6);
    assert_eq!((slow.sent_after, slow.lost_after), (5_500_000, 27_500));
    assert!((slow.last_lost_s.unwrap() - 0.05).abs() < 2e-6);
    let quick = run("sim:capacity=1M", 1.1e6);
    assert_eq!((quick.lost_after, quick.last_lost_s), (0, None));
    let never_overloaded = run("sim:capacity=2M,recovery=50ms", 1.1e6);
    assert_eq!(never_overloaded.last_lost_s, None);
    let never_recovers = run("sim:capacity=0.5M", 1.1e6);
    assert!(never_recovers.last_lost_s.unwrap() > 9.999);
    let dies = run("sim:capacity=1M,dead=62s-63s", 1.1e6);
    assert!((dies.last_lost_s.unwrap() - 3.0).abs() < 2e-6);
}
