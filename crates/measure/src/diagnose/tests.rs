//! Each sign and its cause.

use units::FrameSize;

use super::*;
use crate::trial::{DutReport, Interference, Purpose, TrialSpec};

fn trial(change: impl FnOnce(&mut DirectionCounts)) -> TrialRecord {
    let mut d = DirectionCounts {
        from: "a".to_owned(),
        to: "b".to_owned(),
        intended: 1000,
        sent: 1000,
        lost: 1000,
        ..DirectionCounts::default()
    };
    change(&mut d);
    TrialRecord {
        number: 1,
        spec: TrialSpec::steady(FrameSize::MIN, Fps::new(1e6).unwrap(), 0.001, Purpose::Search),
        attempt: 1,
        real_duration_s: 0.001,
        directions: vec![d],
        interference: Interference::default(),
        dut: None,
        switch_threads: Vec::new(),
        evidence: None,
        power: None,
        violations: Vec::new(),
    }
}

fn diagnosis(change: impl FnOnce(&mut DirectionCounts), ports: &[PortState]) -> String {
    let trial = trial(change);
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
    insta::assert_snapshot!(text, @r"Likely cause: the DUT drops everything. It may not forward between these ports, not know the destination (route, neighbour, MAC table), or not accept the destination MAC: check its drop counters, --dst-mac for a router, and that a and b are the ports you mean. Seen: a -> b: 2000 frames sent, 0 came back with our stamp (the ports' own counters: 2000 out, 0 in). Links: a up, b up.");
}

#[test]
fn each_sign_has_its_cause() {
    let up = [port("a", true, &[]), port("b", true, &["ARP who-has 198.19.0.2", "IPv6 router solicitation"])];
    let down = [port("a", true, &[]), port("b", false, &[])];
    let mut texts = Vec::new();
    let mut causes = |change: fn(&mut DirectionCounts), ports: &[PortState], drops: &[(&str, u64)]| {
        let mut trial = trial(change);
        if !drops.is_empty() {
            let drops = drops.iter().map(|(reason, frames)| ((*reason).to_owned(), *frames)).collect();
            trial.dut = Some(DutReport { drops, ..DutReport::default() });
        }
        let mut seen = Seen::default();
        seen.add(&trial.directions[0]);
        let trials = [&trial];
        let found = cause(&seen, ports, &trials);
        texts.push(found.to_string());
        format!("{found:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
    };
    let kinds = [
        causes(|_| (), &down, &[]),
        causes(|d| d.sent = 0, &up, &[]),
        causes(|d| d.misdirected = 900, &up, &[]),
        causes(|d| d.wrong_length = 900, &up, &[]),
        causes(|d| d.port_rx = Some(900), &up, &[]),
        causes(|d| d.foreign = 3, &up, &[]),
        causes(|d| d.port_tx = Some(0), &[], &[]),
        causes(|d| d.received = 10, &[], &[]),
        causes(|_| (), &[], &[("no-route", 900), ("ttl-expired", 100)]),
        causes(|_| (), &[], &[]),
    ];
    let expected = [
        "LinkDown",
        "NotTaken",
        "OtherPort",
        "Length",
        "NotRead",
        "ForeignOnly",
        "NotSent",
        "TooHigh",
        "Dropped",
        "DropsAll",
    ];
    assert_eq!(kinds, expected);
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn no_trial_is_no_panic() {
    assert_eq!(nothing_came_back(&[], &[]), "No trial was made.");
}
