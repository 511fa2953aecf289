//! Tests of the diagnosis of a device under test that forwards nothing.

use units::FrameSize;

use super::*;
use crate::trial::{Interference, Purpose, TrialSpec};

fn diagnosis(change: impl FnOnce(&mut DirectionCounts), ports: &[PortState]) -> String {
    let mut d = DirectionCounts {
        from: "a".to_owned(),
        to: "b".to_owned(),
        intended: 1000,
        sent: 1000,
        lost: 1000,
        ..DirectionCounts::default()
    };
    change(&mut d);
    let trial = TrialRecord {
        number: 1,
        spec: TrialSpec::steady(FrameSize::MIN, Fps::new(1e6).unwrap(), 0.001, Purpose::Search),
        attempt: 1,
        real_duration_s: 0.001,
        directions: vec![d],
        interference: Interference::default(),
        dut: None,
        violations: Vec::new(),
    };
    let text = nothing_came_back(&[&trial, &trial], ports);
    assert!(!text.contains('\n'));
    text
}

fn port(name: &str, up: bool, samples: &[&str]) -> PortState {
    let foreign_samples = samples.iter().map(ToString::to_string).collect();
    PortState { name: name.to_owned(), link_up: Some(up), foreign_samples }
}

#[test]
fn a_silent_dut_is_described_whole() {
    let text =
        diagnosis(|d| (d.port_tx, d.port_rx) = (Some(1000), Some(0)), &[port("a", true, &[]), port("b", true, &[])]);
    insta::assert_snapshot!(text, @r"a -> b: 2000 frames sent, 0 came back with our stamp (the ports' own counters: 2000 out, 0 in). Links: a up, b up. Likely cause: the DUT drops everything. It may not forward between these ports, not know the destination (route, neighbour, MAC table), or not accept the destination MAC: check its drop counters, --dst-mac for a router, and that a and b are the ports you mean.");
}

#[test]
fn each_sign_has_its_cause() {
    let up = [port("a", true, &[]), port("b", true, &["ARP who-has 198.19.0.2", "IPv6 router solicitation"])];
    let down = [port("a", true, &[]), port("b", false, &[])];
    let cause = |change: fn(&mut DirectionCounts), ports: &[PortState]| {
        diagnosis(change, ports).split("Likely cause: ").nth(1).unwrap().to_owned()
    };
    assert!(cause(|_| (), &down).contains("the link of b is down"));
    assert!(cause(|d| d.sent = 0, &up).contains("a took no frame"));
    assert!(cause(|d| d.misdirected = 900, &up).contains("another port than b"));
    assert!(cause(|d| d.wrong_length = 900, &up).contains("length of frames"));
    assert!(cause(|d| d.port_rx = Some(900), &up).contains("another process reads"));
    assert!(cause(|d| d.foreign = 3, &up).contains("ARP who-has 198.19.0.2; IPv6 router solicitation"));
    assert!(cause(|d| d.port_tx = Some(0), &[]).contains("sent none"));
    assert!(cause(|d| d.received = 10, &[]).contains("less than the lowest load tried (1.000 Mpps)"));
    assert!(cause(|_| (), &[]).contains("drops everything"));
}

#[test]
fn no_trial_is_no_panic() {
    assert_eq!(nothing_came_back(&[], &[]), "No trial was made.");
}
