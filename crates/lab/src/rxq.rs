//! The answer of `ovs-appctl dpif-netdev/pmd-rxq-show`: which poll-mode thread polls which queue.

/// A queue of a port, and who polls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// The port's name.
    pub port: String,
    /// The number of the queue.
    pub queue: u32,
    /// The CPU of its thread.
    pub cpu: u32,
    /// Whether the thread polls only queues that were given to it.
    pub isolated: bool,
}

/// Reads the answer. Lines of other forms are passed over: later versions add some.
pub fn parse(text: &str) -> Vec<Queue> {
    let (mut cpu, mut isolated) = (None, false);
    let mut queues = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some((_, after)) = line.split_once("core_id ") {
            cpu = after.trim_end_matches(':').trim().parse().ok();
            isolated = false;
        } else if let Some(value) = line.strip_prefix("isolated") {
            isolated = value.trim_start_matches([' ', ':']).starts_with("true");
        } else if let Some(rest) = line.strip_prefix("port:") {
            let mut words = rest.split_whitespace();
            let (port, queue) = (words.next(), words.nth(1).and_then(|n| n.parse().ok()));
            if let (Some(port), Some(queue), Some(cpu)) = (port, queue, cpu) {
                queues.push(Queue { port: port.to_owned(), queue, cpu, isolated });
            }
        }
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Want;

    /// As Open vSwitch 3.1 prints it; the document's (2.9) has no `enabled` and no overhead.
    const ANSWER: &str = "Displaying last 60 seconds pmd usage %
pmd thread numa_id 0 core_id 2:
  isolated : true
  port: phy0              queue-id:  0 (enabled)   pmd usage:  0 %
  port: vm1p0             queue-id:  0 (enabled)   pmd usage:  0 %
  overhead:  0 %
pmd thread numa_id 0 core_id 3:
  isolated : false
  port: phy1              queue-id:  0 (enabled)   pmd usage:  0 %
";

    #[test]
    fn each_queue_has_its_thread() {
        let queues = parse(ANSWER);
        let short: Vec<_> = queues.iter().map(|q| (q.port.as_str(), q.queue, q.cpu, q.isolated)).collect();
        assert_eq!(short, [("phy0", 0, 2, true), ("vm1p0", 0, 2, true), ("phy1", 0, 3, false)]);
        let older = "pmd thread numa_id 0 core_id 4:\nisolated : true\nport: dpdk0 queue-id: 1 pmd usage: 0 %\n";
        assert_eq!(parse(older), [Queue { port: "dpdk0".into(), queue: 1, cpu: 4, isolated: true }]);
        assert!(parse("port: x queue-id: 0").is_empty() && parse("core_id x:\nport: y queue-id: 0").is_empty());
    }

    #[test]
    fn a_map_is_right_only_when_it_is_exact() {
        let want = |queues: &[(&str, u32, u32)]| {
            let queues = queues.iter().map(|&(port, queue, cpu)| (port.to_owned(), queue, cpu)).collect();
            Want::Queues(queues).is_met(true, ANSWER)
        };
        assert!(want(&[("phy0", 0, 2), ("vm1p0", 0, 2)]));
        assert!(!want(&[("phy0", 0, 3)]), "another thread");
        assert!(!want(&[("phy0", 0, 2), ("phy0", 1, 2)]), "a queue is missing");
        assert!(!want(&[("phy1", 0, 3)]), "not isolated");
    }
}
