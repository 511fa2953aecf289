//! The lab behind the tester's ports: verified before the first trial, its counters read around each.

use failure::Failure;
use lab::{
    client::{ask_inside, check_running},
    counters::{Counts, PortCounts, ThreadCounts, Threads},
    diagram,
    protocol::{Answer, Ask, Checked, Status},
    step::Want,
    topology::{self, Passage, Passed, Way},
    virtio,
};
use measure::{
    result::{Warning, WarningKind},
    schema::lab::{Hop, HopWay, LabCheck, LabGuest, LabProgram, LabRecord, LabVirtio, SwitchThread},
    trial::DirectionCounts,
};

/// A lab that this process is inside of.
pub struct InLab {
    /// The way of the frames of each direction.
    paths: Vec<Vec<Passage>>,
    /// As a result keeps it.
    record: LabRecord,
}

impl InLab {
    /// Asks the lab what it is. The tester's ports are up: what is not what was asked for now is refused.
    ///
    /// # Errors
    ///
    /// (machine) when the lab does not answer, or is not what was asked for.
    pub fn connect() -> Result<Self, Failure> {
        let Answer::Status(status) = ask_inside(&Ask::Status)? else { return Err(other("status")) };
        let Answer::Checked(checks) = ask_inside(&Ask::CheckConnected)? else { return Err(other("checks")) };
        if let Some(wrong) = checks.iter().find(|check| !check.met) {
            return Err(refusal(&status.name, wrong));
        }
        let path = |port| status.topology.path(port).map_err(Failure::failed);
        let paths = vec![path(0)?, path(1)?];
        Ok(Self { paths, record: record(*status, checks) })
    }

    /// As a result keeps it.
    pub fn record(&self) -> &LabRecord {
        &self.record
    }

    /// Whether a lab is the topology that a plan needs.
    pub fn is_needed(lab: &LabRecord, needed: &str) -> bool {
        topology::is_needed(needed, &lab.topology)
    }

    /// Whether polling threads of its parts share CPUs.
    pub fn takes_turns(&self) -> bool {
        !self.record.shared_cpus.is_empty()
    }

    /// What makes its figures worthless, if anything does.
    pub fn warning(&self) -> Option<Warning> {
        (self.record.accelerator.as_deref() == Some("tcg")).then(|| Warning {
            kind: WarningKind::Emulated,
            text: "virtual machines of this lab are emulated (QEMU's TCG): rates and delays do not describe real ones and are \
                   compared with nothing; the way of the frames and the counters of each hop are real"
                .to_owned(),
        })
    }

    /// The program of the lab that has ended, and what starts it again. `None` if all run, or if the lab does not answer: the
    /// next reading tells that.
    pub fn ended_part(&self) -> Option<String> {
        match ask_inside(&Ask::Status) {
            Ok(Answer::Status(status)) => check_running(&status).err().map(|failure| failure.text),
            _ => None,
        }
    }

    /// What the ports and the switch's threads have counted until now. What has ended counts no more: that is unknown.
    ///
    /// # Errors
    ///
    /// (machine) when the lab does not answer.
    pub fn read(&self) -> Result<Reading, Failure> {
        let Answer::Counters(ports) = ask_inside(&Ask::Counters)? else { return Err(other("counters")) };
        let Answer::Threads(threads) = ask_inside(&Ask::Threads)? else { return Err(other("threads")) };
        Ok(Reading { ports, threads })
    }

    /// Adds to each direction what the ports on its way have counted between two readings.
    pub fn add(&self, before: &Reading, now: &Reading, directions: &mut [DirectionCounts]) {
        let (before, now) = (&before.ports, &now.ports);
        for (path, direction) in self.paths.iter().zip(directions) {
            direction.hops = hops(path, before, now, (direction.sent, direction.received + direction.duplicates));
        }
    }
}

/// What a lab has counted at one moment. The default is of a lab that did not answer: all is unknown.
#[derive(Default)]
pub struct Reading {
    ports: Counts,
    threads: Threads,
}

impl Reading {
    /// What the switch's threads did since an earlier reading. A thread that was started again meanwhile is left out.
    pub fn threads_since(&self, before: &Self) -> Vec<SwitchThread> {
        let one = |(cpu, now): (&u32, &ThreadCounts)| {
            let counts = now.since(before.threads.get(cpu)?)?;
            Some(SwitchThread {
                cpu: *cpu,
                packets: counts.packets,
                busy_cycles: counts.busy_cycles,
                idle_cycles: counts.idle_cycles,
                emc_hits: counts.emc_hits,
                smc_hits: counts.smc_hits,
                simple_hits: counts.simple_hits,
                megaflow_hits: counts.megaflow_hits,
                upcalls: counts.upcalls,
                tx_packets: counts.tx_packets,
                tx_batches: counts.tx_batches,
            })
        };
        self.threads.iter().filter_map(one).collect()
    }
}

/// The hops of one direction; the tester's own counts are its first and its last.
fn hops(path: &[Passage], before: &Counts, now: &Counts, (sent, received): (u64, u64)) -> Vec<Hop> {
    let moved = |end: &str| -> PortCounts {
        let (before, now) = (before.get(end).copied().unwrap_or_default(), now.get(end).copied().unwrap_or_default());
        now.since(&before)
    };
    let of = |port: &Passed| match (port.end.is_tester(), port.way) {
        (true, Way::Out) => Some(sent),
        (true, Way::In) => Some(received),
        (false, Way::In) => moved(&port.end.to_string()).rx,
        (false, Way::Out) => moved(&port.end.to_string()).tx,
    };
    let one = |passage: &Passage| Hop {
        at: passage.to_string(),
        way: match passage.way {
            Way::In => HopWay::In,
            Way::Out => HopWay::Out,
        },
        // Unknown if one of its ports is.
        frames: passage.ports.iter().map(of).sum(),
    };
    path.iter().map(one).collect()
}

fn record(status: Status, checks: Vec<Checked>) -> LabRecord {
    // Each port is in the answers once for the guests, once for the tester.
    let mut virtio: Vec<LabVirtio> = Vec::new();
    for port in checks.iter().filter(|c| matches!(c.want, Want::Rings { .. })).flat_map(|c| virtio::parse(&c.printed)) {
        if virtio.iter().all(|known| known.port != port.name) {
            virtio.push(LabVirtio { features: port.feature_names(), port: port.name, rings: port.rings });
        }
    }
    let guest = |guest: &topology::Guest| LabGuest {
        name: guest.name.clone(),
        application: guest.application.name().to_owned(),
    };
    let guests = status.topology.guest.iter().map(guest).collect();
    let mut vxlan_networks: Vec<u32> =
        status.topology.switch.iter().flat_map(|switch| &switch.tunnel).map(|tunnel| tunnel.vni).collect();
    vxlan_networks.sort_unstable();
    vxlan_networks.dedup();
    let check = |c: Checked| LabCheck { what: c.what, command: c.command, printed: c.printed };
    LabRecord {
        diagram: diagram::render(&status.topology),
        topology: status.topology.name,
        description: status.topology.description,
        accelerator: status.accelerator,
        on: status.on,
        queues: status.options.queues,
        ring: status.options.ring,
        emc: status.options.emc,
        smc: status.options.smc,
        guests,
        vxlan_networks,
        virtio,
        pmd_cpus: status.cpus.pmds,
        shared_cpus: status.cpus.shared,
        versions: status.versions,
        programs: status.programs.into_iter().map(|p| LabProgram { name: p.name, threads: p.threads }).collect(),
        commands: status.commands,
        checks: checks.into_iter().map(check).collect(),
    }
}

fn refusal(name: &str, wrong: &Checked) -> Failure {
    let printed = wrong.printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: String = printed.chars().take(300).collect();
    let by = if wrong.command.is_empty() { String::new() } else { format!("; {} printed: {printed}", wrong.command) };
    Failure::machine(format!("lab {name} is not what was asked for: not so: {}{by}; {}", wrong.what, wrong.remedy))
}

fn other(what: &str) -> Failure {
    Failure::failed(format!("the lab gave another answer than its {what}"))
}

#[cfg(test)]
mod tests {
    use lab::topology;

    use super::*;

    #[test]
    fn each_port_on_the_way_counts_in_its_direction() {
        let path = topology::load("phy-ovs-phy").unwrap().path(0).unwrap();
        let counts = |rx, tx| PortCounts { rx: Some(rx), tx: Some(tx), ..PortCounts::default() };
        let before = Counts::from([("br0:1".to_owned(), counts(5, 50)), ("br0:2".to_owned(), PortCounts::default())]);
        let now = Counts::from([("br0:1".to_owned(), counts(104, 51)), ("br0:2".to_owned(), counts(1, 60))]);
        let hops = hops(&path, &before, &now, (100, 90));
        let short: Vec<_> = hops.iter().map(|h| (h.at.as_str(), h.way, h.frames)).collect();
        // The reading before had no counter of the second port.
        let wanted = [
            ("tester:0", HopWay::Out, Some(100)),
            ("br0:1", HopWay::In, Some(99)),
            ("br0:2", HopWay::Out, None),
            ("tester:1", HopWay::In, Some(90)),
        ];
        assert_eq!(short, wanted);
        // A lab that did not answer after the trial.
        let unknown = super::hops(&path, &now, &Reading::default().ports, (100, 90));
        assert_eq!(unknown.iter().map(|h| h.frames).collect::<Vec<_>>(), [Some(100), None, None, Some(90)]);
    }
}
