//! The Linux kernel as the oracle: the same frames, addresses, routes and neighbours given to it and to
//! `linerate forward` come out equal.

// The helpers below are test code too; clippy knows only functions marked as tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, missing_docs)]

mod cases4;
mod cases6;
mod neighbours;
mod setup;
#[path = "../support/mod.rs"]
mod support;
mod vxlan;

use setup::{compare, Case, Side};
use support::{exclusive, require, Needs};

fn cases() -> Vec<Case> {
    [cases4::all(), cases6::all()].concat()
}

/// Two kernels side by side: every case must be equal, or it proves nothing about anything else.
#[test]
fn the_kernel_equals_itself() {
    require(&[Needs::Root, Needs::Network]);
    let (one, other) = (Side::kernel(), Side::kernel());
    let differences = compare(&cases(), &one, &other, true);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn linerate_forwards_as_the_kernel_does() {
    require(&[Needs::Root, Needs::Network]);
    let _machine = exclusive();
    let (kernel, linerate) = (Side::kernel(), Side::linerate());
    let differences = compare(&cases(), &kernel, &linerate, false);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let (left, right) = linerate.forwarder().ledger();
    assert_eq!(left, right, "the ledger of every frame");
}
