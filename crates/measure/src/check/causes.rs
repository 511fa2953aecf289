//! What takes time from the polling cores, and what would improve that the most.
//!
//! Measured causes come first, by the share of the time that they took. Absences that no counter explains are the
//! hypervisor's on a virtual machine, the firmware's elsewhere. Causes that nobody measured come behind.

use super::precision::percent;
use crate::schema::check::{Cause, CauseKind, CheckResult, CoreNoise, MachineState};

/// Least share of the time that is worth a line.
const LEAST: f64 = 5e-4;
/// How much slower a core is while its other CPU is busy.
const SIBLING_COST: f64 = 0.3;
/// The page that explains causes.
const PAGE: &str = "docs/check.md";

/// The causes, the costliest first.
pub(super) fn ranked(result: &CheckResult) -> Vec<Cause> {
    // What the cores of the trials suffer at once is what trials suffer.
    let cores = result.together.as_ref().map_or(&result.cores, |together| &together.cores);
    let mut causes: Vec<Cause> = one_cpu(result).into_iter().collect();
    if !cores.is_empty() {
        causes.extend(hypervisor(result, cores));
        causes.extend(processes(&result.state, cores));
        causes.extend(throttling(&result.state));
        causes.extend(sibling(cores));
        causes.extend(interrupts(cores));
        causes.extend(governor(cores));
    }
    causes.extend(hugepages(&result.state));
    // Stable: causes without a figure keep their order.
    causes.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
    causes
}

fn cause(kind: CauseKind, share: Option<f64>, text: String, remedy: String) -> Cause {
    let section = match kind {
        CauseKind::OneCpu => "one-cpu",
        CauseKind::Hypervisor => "the-hypervisor",
        CauseKind::Processes => "other-processes",
        CauseKind::RtThrottling => "real-time-throttling",
        CauseKind::Sibling => "a-busy-sibling",
        CauseKind::TimerTicks => "the-timer-tick",
        CauseKind::Interrupts => "interrupts",
        CauseKind::Firmware => "the-firmware",
        CauseKind::Governor => "the-governor",
        CauseKind::NoHugepages => "hugepages",
    };
    Cause { kind, share, text, remedy, page: format!("{PAGE}#{section}") }
}

/// The mean over the cores of a share; what is not known or not a number counts as nothing.
fn mean(cores: &[CoreNoise], of: impl Fn(&CoreNoise) -> Option<f64>) -> f64 {
    let sound = |core| of(core).filter(|share| share.is_finite()).map_or(0.0, |share| share.clamp(0.0, 1.0));
    cores.iter().map(sound).sum::<f64>() / cores.len().max(1) as f64
}

fn worth(share: f64) -> bool {
    share.is_finite() && share >= LEAST
}

/// What to boot with to keep others off these CPUs. CPU 0 always does the kernel's own work.
fn boot(cores: &[CoreNoise], keys: &[&str]) -> String {
    let mut cpus: Vec<u32> = cores.iter().map(|core| core.cpu).filter(|cpu| *cpu != 0).collect();
    cpus.sort_unstable();
    if cpus.is_empty() {
        return "poll on other CPUs than 0: linerate check --cpus".to_owned();
    }
    let cpus = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let keys: Vec<String> = keys.iter().map(|key| format!("{key}={cpus}")).collect();
    format!("boot with {}", keys.join(" "))
}

fn one_cpu(result: &CheckResult) -> Option<Cause> {
    let text = "one CPU was checked: a tester and a device on this machine need a core each".to_owned();
    let remedy = "give two of the CPUs that are allowed (taskset): linerate check --cpus 0,1".to_owned();
    (result.cpus.len() == 1).then(|| cause(CauseKind::OneCpu, Some(1.0), text, remedy))
}

/// Steal, and absences that neither steal nor waiting explains.
fn hypervisor(result: &CheckResult, cores: &[CoreNoise]) -> Option<Cause> {
    let steal = mean(cores, |core| core.steal_share);
    let waited = mean(cores, |core| core.waited_share);
    let rest = (mean(cores, |core| Some(core.absence_share)) - steal - waited).max(0.0);
    if result.host.hypervisor.is_none() {
        let text = format!("absences that nothing here explains took {} % of the time", percent(rest));
        let remedy = "look for SMIs: turn off power saving and USB legacy support in the BIOS".to_owned();
        return worth(rest).then(|| cause(CauseKind::Firmware, Some(rest), text, remedy));
    }
    let share = steal + rest;
    let moved = if result.state.cores_moved { ", and moved the cores" } else { "" };
    let text = format!("the hypervisor took {} % of the time (steal {} %){moved}", percent(share), percent(steal));
    let remedy = "on the host, give each vCPU a core: virsh vcpupin DOMAIN 0 2".to_owned();
    (worth(share) || result.state.cores_moved).then(|| cause(CauseKind::Hypervisor, Some(share), text, remedy))
}

/// Other threads that had the CPU.
fn processes(state: &MachineState, cores: &[CoreNoise]) -> Option<Cause> {
    let share = mean(cores, |core| core.waited_share);
    let mut named: Vec<(u32, String)> = Vec::new();
    for other in &state.others {
        if named.len() < 2 && named.iter().all(|(pid, _)| *pid != other.pid) {
            named.push((other.pid, format!("{} ({})", other.name, other.pid)));
        }
    }
    let named: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
    let who = if named.is_empty() { "not seen from here".to_owned() } else { named.join(", ") };
    let text = format!("other threads took {} % of the time: {who}", percent(share));
    let remedy = match state.others.iter().find(|other| !other.kernel && other.pid != 1) {
        Some(other) => format!("stop them, or move them: taskset -acp OTHER_CPUS {}", other.pid),
        None => boot(cores, &["isolcpus"]),
    };
    worth(share).then(|| cause(CauseKind::Processes, Some(share), text, remedy))
}

/// Matters to threads with real-time priority only.
fn throttling(state: &MachineState) -> Option<Cause> {
    let share = state.rt_throttle_share.filter(|share| worth(*share) && state.real_time == Some(true))?;
    let text = format!("the kernel keeps real-time threads off for {} % of the time", percent(share));
    let remedy = "sysctl kernel.sched_rt_runtime_us=-1".to_owned();
    Some(cause(CauseKind::RtThrottling, Some(share), text, remedy))
}

fn sibling(cores: &[CoreNoise]) -> Option<Cause> {
    let share = mean(cores, |core| core.sibling_busy_share.map(|busy| busy * SIBLING_COST));
    let busiest = cores.iter().filter(|core| core.sibling_busy_share.is_some_and(f64::is_finite));
    let core =
        busiest.max_by(|a, b| a.sibling_busy_share.unwrap_or(0.0).total_cmp(&b.sibling_busy_share.unwrap_or(0.0)))?;
    let (busy, other) = (core.sibling_busy_share?, *core.siblings.first()?);
    // The cores of the trials may be siblings: each keeps the other busy.
    let ours = cores.iter().any(|core| core.cpu == other);
    let text = format!("CPU {other} shares a core with CPU {} and was busy {} % of the time", core.cpu, percent(busy));
    let remedy = match ours {
        true => "poll CPUs of two cores: linerate check --cpus (see lscpu -e)".to_owned(),
        false => format!("echo 0 > /sys/devices/system/cpu/cpu{other}/online"),
    };
    worth(share).then(|| cause(CauseKind::Sibling, Some(share), text, remedy))
}

/// Gaps too short for an absence, by the timer and by everything else, in proportion to their numbers.
fn interrupts(cores: &[CoreNoise]) -> Vec<Cause> {
    let short = mean(cores, |core| Some((core.away_share - core.absence_share).max(0.0)));
    let rate = |of: fn(&CoreNoise) -> Option<f64>| {
        let all = cores.iter().filter_map(of).filter(|rate| rate.is_finite() && *rate >= 0.0);
        all.sum::<f64>() / cores.len().max(1) as f64
    };
    let (timer, all) = (rate(|core| core.timer_per_s), rate(|core| core.interrupts_per_s));
    let other = (all - timer).max(0.0);
    let part = |n: f64| if timer + other > 0.0 { short * n / (timer + other) } else { 0.0 };
    let mut causes = Vec::new();
    if worth(part(timer)) {
        let text = format!("the timer came {timer:.0} times a second and took {} % of the time", percent(part(timer)));
        let remedy = match cores.iter().all(|core| core.tickless) {
            true => boot(cores, &["isolcpus"]),
            false => boot(cores, &["nohz_full", "isolcpus", "rcu_nocbs"]),
        };
        causes.push(cause(CauseKind::TimerTicks, Some(part(timer)), text, remedy));
    }
    if worth(part(other)) {
        let text = format!("interrupts came {other:.0} times a second and took {} % of the time", percent(part(other)));
        let remedy = "for irq in /proc/irq/*/smp_affinity_list; do echo 0 > $irq; done".to_owned();
        causes.push(cause(CauseKind::Interrupts, Some(part(other)), text, remedy));
    }
    causes
}

fn governor(cores: &[CoreNoise]) -> Option<Cause> {
    let core = cores.iter().find(|core| core.governor.as_deref().is_some_and(|name| name != "performance"))?;
    let text = format!("the frequency of CPU {} goes by the governor {}", core.cpu, core.governor.as_deref()?);
    Some(cause(CauseKind::Governor, None, text, "cpupower frequency-set -g performance".to_owned()))
}

fn hugepages(state: &MachineState) -> Option<Cause> {
    let text = "packets are in ordinary pages: rates with many flows are lower".to_owned();
    (!state.hugepages).then(|| cause(CauseKind::NoHugepages, None, text, "sysctl vm.nr_hugepages=512".to_owned()))
}
