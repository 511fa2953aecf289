//! Which CPU polls which queue.

use std::collections::BTreeMap;

use failure::Failure;
use rig::device::Polled;

/// Which CPUs poll, and which lcore polls which queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlacement {
    /// CPUs that poll; the first lcore's first.
    pub cpus: Vec<u32>,
    /// Each queue, once.
    pub polled: Vec<Polled>,
}

/// Places the queues of `ports` ports on lcores, from `--cpus`, `--queue-map` and `--rx-queues`, on CPUs that are allowed.
///
/// # Errors
///
/// (usage) for a map that is not one or leaves a queue out, a CPU that is not allowed or given twice, and a CPU without a
/// queue.
pub fn place_queues(
    given: &[u32],
    map: &[String],
    ports: usize,
    rx_queues: u16,
    allowed: &[u32],
) -> Result<QueuePlacement, Failure> {
    let map = queue_map(map, ports, rx_queues)?;
    let cpus = cpus(given, &map, allowed)?;
    let polled = match map {
        Some(map) => {
            let lcore = |cpu: u32| cpus.iter().position(|&c| c == cpu).unwrap_or(0);
            map.into_iter().map(|((port, queue), cpu)| Polled { port, queue, lcore: lcore(cpu) }).collect()
        }
        None => in_turn(ports, rx_queues, cpus.len()),
    };
    let idle = (0..cpus.len()).find(|&lcore| polled.iter().all(|p| p.lcore != lcore));
    if let Some(idle) = idle {
        return Err(Failure::usage(format!(
            "CPU {} has no queue to poll: there are {} queues in all. Ask for more (--rx-queues) or give fewer --cpus",
            cpus[idle],
            polled.len()
        )));
    }
    Ok(QueuePlacement { cpus, polled })
}

/// A number of things, in words where there are none.
pub(crate) fn count(n: usize) -> String {
    if n == 0 {
        "no".into()
    } else {
        n.to_string()
    }
}

type QueueMap = BTreeMap<(usize, u16), u32>;

fn queue_map(texts: &[String], ports: usize, queues: u16) -> Result<Option<QueueMap>, Failure> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut map = QueueMap::new();
    for text in texts {
        let err = |why: &str| {
            Failure::usage(format!(
                "--queue-map {text:?}: {why}; must be PORT:QUEUE=CPU with port 0 to {} and queue 0 to {}",
                ports - 1,
                queues - 1
            ))
        };
        let parts = text.split_once('=').and_then(|(left, cpu)| Some((left.split_once(':')?, cpu)));
        let ((port, queue), cpu) = parts.ok_or_else(|| err("wrong form"))?;
        let numbers = (port.trim().parse(), queue.trim().parse(), cpu.trim().parse());
        let (Ok(port), Ok(queue), Ok(cpu)) = numbers else { return Err(err("not all are numbers")) };
        if port >= ports || queue >= queues {
            return Err(err("there is no such queue"));
        }
        if map.insert((port, queue), cpu).is_some() {
            return Err(err("this queue is given twice"));
        }
    }
    let all = (0..ports).flat_map(|port| (0..queues).map(move |queue| (port, queue)));
    if let Some((port, queue)) = all.into_iter().find(|key| !map.contains_key(key)) {
        return Err(Failure::usage(format!(
            "--queue-map: queue {queue} of port {port} has no CPU, so nothing would poll it: add {port}:{queue}=CPU"
        )));
    }
    Ok(Some(map))
}

/// The CPUs that poll: those given, or those of the map, or the last but one allowed, since a tester
/// takes the last.
fn cpus(given: &[u32], map: &Option<QueueMap>, allowed: &[u32]) -> Result<Vec<u32>, Failure> {
    let mut cpus = given.to_vec();
    if let Some(map) = map {
        for &cpu in map.values() {
            if !cpus.contains(&cpu) {
                if !given.is_empty() {
                    return Err(Failure::usage(format!("--queue-map names CPU {cpu}, which is not among --cpus")));
                }
                cpus.push(cpu);
            }
        }
    }
    if cpus.is_empty() {
        cpus.extend(allowed.iter().rev().nth(1).or(allowed.last()));
    }
    for (i, cpu) in cpus.iter().enumerate() {
        if !allowed.contains(cpu) {
            let list = allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            return Err(Failure::usage(format!("--cpus {cpu}: this process may use CPUs {list}")));
        }
        if cpus[..i].contains(cpu) {
            return Err(Failure::usage(format!("--cpus {cpu} is given twice: each lcore needs a CPU of its own")));
        }
    }
    Ok(cpus)
}

/// Queue n of each port by lcore n; ports of one queue in turn.
fn in_turn(ports: usize, queues: u16, lcores: usize) -> Vec<Polled> {
    let lcore = |port: usize, queue: u16| if queues > 1 { usize::from(queue) % lcores } else { port % lcores };
    let all = (0..ports).flat_map(|port| (0..queues).map(move |queue| (port, queue)));
    all.map(|(port, queue)| Polled { port, queue, lcore: lcore(port, queue) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_in_turn_or_by_the_map() {
        let by = |polled: Vec<Polled>| polled.iter().map(|p| (p.port, p.queue, p.lcore)).collect::<Vec<_>>();
        assert_eq!(by(in_turn(2, 1, 1)), [(0, 0, 0), (1, 0, 0)]);
        assert_eq!(by(in_turn(2, 1, 2)), [(0, 0, 0), (1, 0, 1)]);
        assert_eq!(by(in_turn(2, 2, 2)), [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)]);
        let map = |texts: &[&str]| queue_map(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>(), 2, 1);
        assert_eq!(map(&["0:0=2", "1:0=3"]).unwrap().unwrap(), BTreeMap::from([((0, 0), 2), ((1, 0), 3)]));
        let bad: [&[&str]; 5] = [&["0:0=2"], &["0:0=2", "0:0=3"], &["0:1=2"], &["0=2"], &["0:0=x"]];
        insta::assert_snapshot!(bad.map(|texts| map(texts).unwrap_err().text).join("\n"), @r#"
        --queue-map: queue 0 of port 1 has no CPU, so nothing would poll it: add 1:0=CPU
        --queue-map "0:0=3": this queue is given twice; must be PORT:QUEUE=CPU with port 0 to 1 and queue 0 to 0
        --queue-map "0:1=2": there is no such queue; must be PORT:QUEUE=CPU with port 0 to 1 and queue 0 to 0
        --queue-map "0=2": wrong form; must be PORT:QUEUE=CPU with port 0 to 1 and queue 0 to 0
        --queue-map "0:0=x": not all are numbers; must be PORT:QUEUE=CPU with port 0 to 1 and queue 0 to 0
        "#);
    }

    #[test]
    fn polling_cpus_are_real_and_distinct() {
        assert_eq!(cpus(&[], &None, &[0, 1, 2]).unwrap(), [1], "the tester takes the last");
        assert_eq!(cpus(&[], &None, &[3]).unwrap(), [3]);
        assert_eq!(cpus(&[], &Some(BTreeMap::from([((0, 0), 0), ((1, 0), 1)])), &[0, 1]).unwrap(), [0, 1]);
        let map = Some(BTreeMap::from([((0, 0), 0)]));
        let bad = [cpus(&[7], &None, &[0, 1]), cpus(&[1, 1], &None, &[0, 1]), cpus(&[1], &map, &[0, 1])];
        insta::assert_snapshot!(bad.map(|bad| bad.unwrap_err().text).join("\n"), @r#"
        --cpus 7: this process may use CPUs 0,1
        --cpus 1 is given twice: each lcore needs a CPU of its own
        --queue-map names CPU 0, which is not among --cpus
        "#);
    }
}
