//! What looking at a machine costs: an audit, an audit with outcomes, and watching.
//!
//! `cargo bench -p host --bench cost`. Ends with 1 if a figure is above what docs/host.md promises.

use std::{
    fs,
    time::{Duration, Instant},
};

use host::{
    core_plan::{CorePlan, Shape},
    machine::Machine,
    outcome, rules,
    watch::Watch,
    Roots,
};

/// Looks of the watch, one a second.
const LOOKS: u32 = 10;

fn main() {
    let roots = Roots::default();
    let machine = Machine::read(&roots);
    let plan =
        CorePlan::make(&machine, &Shape::of(Default::default())).unwrap_or_else(|_| CorePlan::squeezed(&machine, None));
    let audit = fastest(20, || {
        let machine = Machine::read(&roots);
        rules::audit(&roots, &machine, &plan, &[]);
    });
    let begun = Instant::now();
    let outcome = outcome::measure(&roots, &plan, Duration::from_secs(10), &|| true);
    let with_outcome = audit + begun.elapsed();
    let threads = threads();
    let (before, begun) = (on_cpu(), Instant::now());
    let mut watch = Watch::begin(&roots, &plan.busy());
    for look in 1..=LOOKS {
        std::thread::sleep(Duration::from_secs(look.into()).saturating_sub(begun.elapsed()));
        watch.look();
    }
    let share = (on_cpu() - before).as_secs_f64() / begun.elapsed().as_secs_f64();
    println!("audit                     {:.1} ms (limit 1 s)", audit.as_secs_f64() * 1e3);
    println!("audit with outcome checks {:.1} s (limit 15 s)", with_outcome.as_secs_f64());
    println!("watch, once a second      {:.3} % of a core, {threads} threads on the machine (limit 1 %)", share * 1e2);
    let good = audit < Duration::from_secs(1) && with_outcome < Duration::from_secs(15) && share < 0.01;
    std::process::exit(i32::from(!good || outcome.is_err()));
}

/// The shortest of several runs: other programs take the CPU.
fn fastest(runs: u32, run: impl Fn()) -> Duration {
    let one = |_| {
        let begun = Instant::now();
        run();
        begun.elapsed()
    };
    (0..runs).map(one).min().unwrap_or(Duration::MAX)
}

/// What this thread has used of a CPU.
fn on_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

/// Threads of all programs.
fn threads() -> usize {
    let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let all = loadavg.split_ascii_whitespace().nth(3).and_then(|both| both.split('/').nth(1)?.parse().ok());
    all.unwrap_or(0)
}
