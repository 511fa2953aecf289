//! Which trials poll with real-time priority.
//!
//! A polling lcore that the kernel's scheduler cannot take away has no gaps, but the kernel takes it away all the same once
//! it has polled for 0.95 s of a second (`kernel.sched_rt_runtime_us`, the fair server), and then for 50 ms. So `auto` uses
//! real-time priority for short trials only, and rests between them: the limits are never reached, and the machine keeps a
//! tenth of its time.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use dpdk::{DpdkError, PortSpec, Scheduling};
use failure::Failure;
use host::RealtimeLimits;
use measure::result::{Warning, WarningKind};
use serde::{Deserialize, Serialize};

/// Whether polling lcores get real-time priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RealtimeChoice {
    /// In short trials, where the rights allow it and the device does not need the CPUs that are polled.
    #[default]
    Auto,
    /// In every trial; an error without the right.
    On,
    /// Never.
    Off,
}

/// The longest stretch that `auto` polls with real-time priority.
const SHORT: Duration = Duration::from_millis(800);
/// The share of time that `auto` polls at most.
const SHARE: f64 = 0.9;
/// A gap of this length with real-time priority is put down to the kernel's limits, which take 50 ms by default.
const LIMITED_GAP: Duration = Duration::from_millis(20);

/// Where the device under test does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum DeviceSite {
    /// In this process, or on another machine.
    #[default]
    Apart,
    /// In another process of this machine. On two CPUs, real-time priority of the tester moves all other work to the CPU of
    /// the device, which is then away without anybody knowing.
    Process,
    /// In the kernel: its work for the tester's CPU is done by ordinary threads.
    Kernel,
}

impl DeviceSite {
    /// Of the device behind these ports of the tester.
    pub(crate) fn behind(ports: &[PortSpec]) -> Self {
        let one = |spec: &PortSpec| match spec {
            PortSpec::Eth { .. } | PortSpec::Raw { .. } => Self::Kernel,
            PortSpec::Memif { .. } | PortSpec::Vhost { .. } | PortSpec::Virtio { .. } => Self::Process,
            PortSpec::Pci { .. } | PortSpec::Wire | PortSpec::Null { .. } | PortSpec::Pcap { .. } => Self::Apart,
        };
        ports.iter().map(one).max().unwrap_or_default()
    }
}

/// When a rig polls with real-time priority.
#[derive(Debug)]
pub(crate) struct Realtime {
    rule: Rule,
    limits: RealtimeLimits,
    /// The CPUs that are polled.
    polled: Vec<u32>,
    /// The last stretch with real-time priority: when it ended, and its length.
    last: Option<(Instant, Duration)>,
    /// Whether the reader was warned.
    warned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Not at all, and why.
    Never(&'static str),
    /// Stretches up to [`SHORT`].
    Short,
    Always,
}

impl Realtime {
    /// Decides by the choice, the rights, the machine, and where the device works.
    ///
    /// # Errors
    ///
    /// (machine) when real-time priority was asked for and is refused.
    pub(crate) fn decide(
        choice: RealtimeChoice,
        right: Result<(), DpdkError>,
        limits: RealtimeLimits,
        polled: Vec<u32>,
        device: DeviceSite,
    ) -> Result<Self, Failure> {
        let tight = limits.runtime_us.is_some_and(|(runtime, period)| (runtime as f64) < 0.95 * period as f64);
        let rule = match (choice, right) {
            (RealtimeChoice::Off, _) => Rule::Never("off"),
            (RealtimeChoice::On, Ok(())) => Rule::Always,
            (RealtimeChoice::On, Err(e)) => return Err(Failure::machine(format!("--realtime on: {e}"))),
            (RealtimeChoice::Auto, Err(_)) => Rule::Never("off: no right to it"),
            (RealtimeChoice::Auto, Ok(())) if device == DeviceSite::Kernel => {
                Rule::Never("off: the kernel forwards frames")
            }
            (RealtimeChoice::Auto, Ok(())) if limits.online.len() < 2 => Rule::Never("off: the machine has one CPU"),
            (RealtimeChoice::Auto, Ok(())) if device == DeviceSite::Process && limits.online.len() < 3 => {
                Rule::Never("off: other work would move to the CPU of the device")
            }
            (RealtimeChoice::Auto, Ok(())) if tight => Rule::Never("off: kernel.sched_rt_runtime_us is below 95 %"),
            (RealtimeChoice::Auto, Ok(())) => Rule::Short,
        };
        Ok(Self { rule, limits, polled, last: None, warned: false })
    }

    /// How lcores that poll for up to so long are scheduled.
    pub(crate) fn scheduling(&self, stretch: Duration) -> Scheduling {
        let short = stretch <= SHORT;
        let wanted = match self.rule {
            Rule::Never(_) => false,
            Rule::Short => short,
            Rule::Always => short || !self.can_starve_the_machine(),
        };
        if wanted {
            Scheduling::Realtime
        } else {
            Scheduling::Ordinary
        }
    }

    /// Whether loops on the polled CPUs would leave the machine no time at all.
    fn can_starve_the_machine(&self) -> bool {
        !self.limits.keeps_machine_alive() && self.limits.online.iter().all(|cpu| self.polled.contains(cpu))
    }

    /// How long to wait before polling with real-time priority again.
    pub(crate) fn rest(&self) -> Duration {
        match self.last {
            Some((ended, length)) if self.rule == Rule::Short => {
                length.mul_f64(1.0 / SHARE - 1.0).saturating_sub(ended.elapsed())
            }
            _ => Duration::ZERO,
        }
    }

    /// Notes a stretch that has just ended.
    pub(crate) fn ended(&mut self, scheduling: Scheduling, length: Duration) {
        if scheduling == Scheduling::Realtime {
            self.last = Some((Instant::now(), length));
        }
    }

    /// What a reader should know after a trial whose lcores should have polled for so long, once.
    pub(crate) fn warning(&mut self, stretch: Duration, largest_gap: Duration) -> Option<Warning> {
        let scheduling = self.scheduling(stretch);
        let text = match scheduling {
            _ if self.warned => None,
            Scheduling::Realtime if stretch > SHORT && largest_gap >= LIMITED_GAP => self.limited(largest_gap),
            Scheduling::Ordinary if self.rule == Rule::Always => Some(
                "--realtime on: trials longer than 800ms poll without real-time priority: the kernel's limits are lifted, \
                 and every CPU is polled, so the machine could not be reached. Leave it a CPU, or set the limit again: \
                 sysctl -w kernel.sched_rt_runtime_us=950000"
                    .to_owned(),
            ),
            _ => None,
        }?;
        self.warned = true;
        Some(Warning { kind: WarningKind::Realtime, text })
    }

    /// Names the limits that took a real-time lcore away, with the commands that lift them.
    fn limited(&self, gap: Duration) -> Option<String> {
        let mut lift = Vec::new();
        if self.limits.runtime_us.is_some() {
            lift.push("sysctl -w kernel.sched_rt_runtime_us=-1".to_owned());
        }
        if self.limits.fair_server {
            let file = |cpu: &u32| format!("echo 0 > /sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
            lift.extend(self.polled.iter().map(file));
        }
        let mut text = format!(
            "--realtime on: the kernel took a polling lcore away for {:.0} ms: real-time threads must leave ordinary ones some \
             of each second",
            gap.as_secs_f64() * 1e3
        );
        let _ = match lift.is_empty() {
            true => return None,
            false => write!(
                text,
                ". As root: {}. Without this limit, nothing else runs on the polled CPUs during a trial. Or use --realtime \
                 auto with trials up to 800ms",
                lift.join("; ")
            ),
        };
        Some(text)
    }

    /// For the facts of the machine, in words.
    pub(crate) fn describe(&self) -> String {
        match self.rule {
            Rule::Never(why) => why.to_owned(),
            Rule::Short => "polling lcores in trials up to 800 ms".to_owned(),
            Rule::Always => "polling lcores".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(runtime_us: Option<(u64, u64)>, fair_server: bool) -> RealtimeLimits {
        RealtimeLimits { runtime_us, fair_server, online: vec![0, 1] }
    }

    fn usual() -> RealtimeLimits {
        limits(Some((950_000, 1_000_000)), true)
    }

    fn right(may: bool) -> Result<(), DpdkError> {
        may.then_some(()).ok_or_else(|| DpdkError::Realtime { why: "Operation not permitted".into() })
    }

    fn by(choice: RealtimeChoice, may: bool, limits: RealtimeLimits, device: DeviceSite) -> Realtime {
        Realtime::decide(choice, right(may), limits, vec![0, 1], device).unwrap()
    }

    /// Whether a trial of 300 ms, and one of 60 s, are real-time.
    fn short_and_long(realtime: &Realtime) -> (bool, bool) {
        let is = |ms| realtime.scheduling(Duration::from_millis(ms)) == Scheduling::Realtime;
        (is(300), is(60_000))
    }

    #[test]
    fn auto_is_for_short_trials_that_starve_nobody() {
        let auto = |may, limits, device| short_and_long(&by(RealtimeChoice::Auto, may, limits, device));
        assert_eq!(auto(true, usual(), DeviceSite::Apart), (true, false));
        assert_eq!(auto(true, limits(None, false), DeviceSite::Apart), (true, false));
        assert_eq!(auto(false, usual(), DeviceSite::Apart), (false, false));
        assert_eq!(auto(true, usual(), DeviceSite::Kernel), (false, false));
        assert_eq!(auto(true, usual(), DeviceSite::Process), (false, false));
        assert_eq!(auto(true, RealtimeLimits { online: vec![0, 1, 2], ..usual() }, DeviceSite::Process), (true, false));
        assert_eq!(auto(true, limits(Some((500_000, 1_000_000)), false), DeviceSite::Apart), (false, false));
        assert_eq!(auto(true, RealtimeLimits { online: vec![0], ..usual() }, DeviceSite::Apart), (false, false));
        assert_eq!(short_and_long(&by(RealtimeChoice::Off, true, usual(), DeviceSite::Apart)), (false, false));
    }

    #[test]
    fn on_is_refused_without_the_right_and_never_takes_the_last_cpu() {
        let refused =
            Realtime::decide(RealtimeChoice::On, right(false), usual(), vec![0, 1], DeviceSite::Apart).unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Machine);
        insta::assert_snapshot!(refused.text);
        assert_eq!(short_and_long(&by(RealtimeChoice::On, true, usual(), DeviceSite::Kernel)), (true, true));
        let mut unlimited = by(RealtimeChoice::On, true, limits(None, false), DeviceSite::Apart);
        assert_eq!(short_and_long(&unlimited), (true, false));
        assert_eq!(unlimited.warning(Duration::from_millis(300), Duration::ZERO), None);
        let warning = unlimited.warning(Duration::from_secs(60), Duration::ZERO).unwrap();
        assert_eq!(warning.kind, WarningKind::Realtime);
        assert_eq!(unlimited.warning(Duration::from_secs(60), Duration::ZERO), None, "once");
        let online = RealtimeLimits { online: vec![0, 1, 2], ..limits(None, false) };
        assert_eq!(short_and_long(&by(RealtimeChoice::On, true, online, DeviceSite::Apart)), (true, true));
    }

    #[test]
    fn a_limit_that_was_seen_is_named_with_what_lifts_it() {
        let (long, gap) = (Duration::from_secs(4), Duration::from_millis(51));
        let mut on = by(RealtimeChoice::On, true, usual(), DeviceSite::Apart);
        assert_eq!(on.warning(long, Duration::from_millis(2)), None);
        insta::assert_snapshot!(on.warning(long, gap).unwrap().text);
        // Without limits, somebody else took the core away.
        let free = RealtimeLimits { online: vec![0, 1, 2], ..limits(None, false) };
        assert_eq!(by(RealtimeChoice::On, true, free, DeviceSite::Apart).warning(long, gap), None);
        assert_eq!(by(RealtimeChoice::Auto, true, usual(), DeviceSite::Apart).warning(long, gap), None);
    }

    #[test]
    fn ports_tell_where_the_device_works() {
        let behind = |ports: [&str; 2]| DeviceSite::behind(&ports.map(|port| port.parse().unwrap()));
        assert_eq!(behind(["memif:/a", "eth:b"]), DeviceSite::Kernel);
        assert_eq!(behind(["0000:37:00.0", "vhost:/a"]), DeviceSite::Process);
        assert_eq!(behind(["0000:37:00.0", "0000:37:00.1"]), DeviceSite::Apart);
        assert_eq!(DeviceSite::behind(&[]), DeviceSite::Apart);
    }

    #[test]
    fn auto_rests_a_tenth_of_the_time() {
        let mut auto = by(RealtimeChoice::Auto, true, usual(), DeviceSite::Apart);
        assert_eq!(auto.rest(), Duration::ZERO);
        auto.ended(Scheduling::Ordinary, Duration::from_secs(9));
        assert_eq!(auto.rest(), Duration::ZERO);
        auto.ended(Scheduling::Realtime, Duration::from_secs(9));
        let rest = auto.rest().as_secs_f64();
        assert!((0.5..=1.0).contains(&rest), "{rest}");
        auto.last = Some((Instant::now() - Duration::from_secs(2), Duration::from_secs(9)));
        assert_eq!(auto.rest(), Duration::ZERO);
    }
}
