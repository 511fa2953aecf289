//! How often, at most.

/// After so many trials in a row that the tester could not offer, though its polling gaps do not explain it, the load is
/// beyond the tester.
pub const SHORT_IN_A_ROW: u32 = 3;
/// The same for the confirmation of a throughput that only the tester limits: so many in all.
pub const SHORT_CONFIRMATIONS: u32 = 6;
/// After so many loads in a row without one valid trial the tester is given up: a machine that takes its cores away in
/// every trial offers no load in full, however low.
pub const LOADS_IN_A_ROW: u32 = 3;
/// After so many trials of a load in nearly all of which somebody was away it is given up, however many repeats are allowed:
/// so much time tells what a machine is like.
pub const UNCLEAR: u32 = 8;
/// After so many trials in another placement of the cores than the first a test ends: the host does not move them back.
pub const ELSEWHERE: u32 = 20;
/// After so many valid trials in a row without a received frame a test ends: the device is gone.
pub const SILENT_TRIALS: u32 = 3;
/// The same for a test whose loads may each be too high for the device.
pub const SILENT_LOADS: u32 = 20;
/// After so many checks at a low load without a received frame a device that forwarded before is gone.
pub const SILENT_CHECKS: u32 = 5;
/// A score of a flow logger that says nothing is made again, so many times in all.
pub const SCORES: u32 = 3;

/// Share of the most that the tester offered at which it is asked next: a core without a few percent to spare cannot make
/// up for a timer's tick.
pub const HEADROOM: f64 = 0.93;
/// Trials in too little of which nobody was away that are made to confirm a throughput: they say nothing against it.
pub const UNCLEAR_CONFIRMATIONS: u32 = 3;
/// A confirmation that was offered so much less of its load does not confirm it, as a share.
pub const SHORT_OF_LOAD: f64 = 0.05;
/// A throughput whose confirmation loses frames is lowered at most so often, each time by the precision.
pub const STEPS_DOWN: u32 = 8;
/// A throughput that only the tester limits is lowered to this share when its confirmations fall short.
pub const TESTER_STEP: f64 = 0.9;
/// A search begins again so often at most, since trials that passed turned out not to have.
pub const RESTARTS: u32 = 2;
/// Rounds of an address test at most: halvings of any range there is, with rounds to spare.
pub const ROUNDS: u32 = 200;
