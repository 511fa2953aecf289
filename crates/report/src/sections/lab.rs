//! The lab that was measured: where frames were lost hop by hop, its picture, and what it was made of.

use measure::{
    result::RunResult,
    schema::lab::{losses, sum, sum_threads, HopLoss, HopWay, LabRecord, SwitchThread},
};

use super::chain;
use crate::{
    document::{Audience, Block, Fact, Note, Section, Topic},
    num,
    style::Paint,
    table::Table,
    text,
};

/// Frames and losses hop by hop, of all trials together; on a short text only the hops where frames were lost.
pub(crate) fn hops_section(result: &RunResult) -> Section {
    let all = by_direction(result);
    let trials = result.trials.iter().filter(|t| t.directions.iter().any(|d| !d.hops.is_empty())).count();
    let title = format!("Hop by hop, {trials} trial{} together", if trials == 1 { "" } else { "s" });
    let refused = |n: usize| result.trials.iter().filter_map(|t| t.directions.get(n)).map(|d| d.refused).sum::<u64>();
    let notes = all.iter().enumerate().map(|(n, hops)| Note::plain(where_lost(hops) + &refused_before(refused(n))));
    Section::new(Topic::Hops, title)
        .with(Audience::READERS, Block::Table(table(&all)))
        .with(Audience::READERS, Block::Notes(notes.collect()))
}

/// Frames that never left the tester: they count as loss of the device, and are at none of its hops.
fn refused_before(frames: u64) -> String {
    match frames {
        0 => String::new(),
        frames => format!("; {} more were refused by the tester's port, whose queue was full", num::thousands(frames)),
    }
}

/// What the switch's polling threads did, of all trials together.
pub(crate) fn threads_section(result: &RunResult) -> Section {
    let threads = sum_threads(result.trials.iter().map(|trial| trial.switch_threads.as_slice()));
    let section = Section::new(Topic::SwitchThreads, "Polling threads of the switch, all trials together");
    match threads.is_empty() {
        true => section,
        false => section.with(Audience::READERS, Block::Table(threads_table(&threads))),
    }
}

fn threads_table(threads: &[SwitchThread]) -> Table {
    let mut t = Table::default();
    t.right(1, "CPU", "");
    t.right(1, "packets", "");
    t.right(1, "clocks", "a packet");
    t.right(1, "busy", "%");
    t.right(1, "by port", "%");
    t.right(1, "EMC", "%");
    t.right(1, "SMC", "%");
    t.right(1, "megaflow", "%");
    t.right(1, "upcalls", "");
    t.right(1, "packets", "a burst sent");
    let ratio = |part: u64, whole: u64, digits: usize, unit: f64| match whole {
        0 => "-".to_owned(),
        _ => format!("{:.digits$}", part as f64 / whole as f64 * unit),
    };
    for thread in threads {
        // A packet of a tunnel is looked up twice.
        let found = [thread.simple_hits, thread.emc_hits, thread.smc_hits, thread.megaflow_hits, thread.upcalls];
        let lookups = found.into_iter().fold(0, u64::saturating_add).max(thread.packets);
        let share = |part: u64| ratio(part, lookups, 1, 100.0);
        t.row(vec![
            thread.cpu.to_string().into(),
            num::thousands(thread.packets).into(),
            ratio(thread.busy_cycles, thread.packets, 0, 1.0).into(),
            ratio(thread.busy_cycles, thread.busy_cycles.saturating_add(thread.idle_cycles), 1, 100.0).into(),
            share(thread.simple_hits).into(),
            share(thread.emc_hits).into(),
            share(thread.smc_hits).into(),
            share(thread.megaflow_hits).into(),
            num::thousands(thread.upcalls).into(),
            ratio(thread.tx_packets, thread.tx_batches, 1, 1.0).into(),
        ]);
    }
    t
}

/// The lab's picture and its parts.
pub(crate) fn facts_section(result: &RunResult) -> Section {
    let Some(lab) = &result.lab else { return Section::new(Topic::Lab, "") };
    let section = Section::new(Topic::Lab, format!("Lab {}", text::clean(&lab.topology)));
    let chains: Vec<String> = by_direction(result).iter().map(|hops| chain::draw(hops)).collect();
    let section = section
        .with(Audience::DETAILS, Block::Picture(lab.diagram.clone()))
        .with(Audience::DETAILS, Block::Picture(chains.join("\n")));
    section
        .with(Audience::DETAILS, Block::Facts(facts(lab, false)))
        .with(Audience::FILE, Block::Facts(facts(lab, true)))
}

fn facts(lab: &LabRecord, commands: bool) -> Vec<Fact> {
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let fact = |label: &str, value: String| Fact::new(label.to_owned(), value, Paint::Plain);
    if commands {
        return lab.commands.iter().map(|line| fact("command", line.clone())).collect();
    }
    let mut facts = vec![fact("topology", lab.description.clone()), fact("queues", format!("{} a port", lab.queues))];
    facts.extend(lab.on.iter().map(|host| fact("on", host.clone())));
    if !lab.pmd_cpus.is_empty() {
        facts.push(fact("switch", format!("polls on CPU {}", list(&lab.pmd_cpus))));
    }
    if !lab.shared_cpus.is_empty() {
        facts.push(fact("shared", format!("CPU {}: more than one polling thread", list(&lab.shared_cpus))));
    }
    facts.extend(lab.versions.iter().map(|version| fact("version", version.clone())));
    for program in &lab.programs {
        let mut threads: Vec<String> = program.threads.iter().map(|(name, cpus)| format!("{name} {cpus}")).collect();
        threads.dedup();
        facts.push(fact(&program.name, threads.join(", ")));
    }
    facts.extend(lab.checks.iter().map(|check| fact("checked", check.what.clone())));
    facts
}

/// The hops of each direction, of all trials together.
fn by_direction(result: &RunResult) -> Vec<Vec<HopLoss>> {
    let directions = result.trials.iter().map(|t| t.directions.len()).max().unwrap_or(0);
    let of = |n: usize| sum(result.trials.iter().filter_map(|t| t.directions.get(n)).map(|d| d.hops.as_slice()));
    (0..directions).map(of).filter(|hops| !hops.is_empty()).map(|hops| losses(&hops)).collect()
}

fn table(all: &[Vec<HopLoss>]) -> Table {
    let mut t = Table::default();
    t.left(0, "hop", "");
    t.left(0, "", "");
    t.right(1, "frames", "");
    t.right(1, "lost", "before it");
    for HopLoss { hop, lost } in all.iter().flatten() {
        let way = match hop.way {
            HopWay::In => "in",
            HopWay::Out => "out",
        };
        let frames = hop.frames.map_or_else(|| "unknown".to_owned(), num::thousands);
        let lost = match lost {
            None => String::new(),
            Some(lost) if *lost < 0 => format!("-{}", num::thousands(lost.unsigned_abs())),
            Some(lost) => num::thousands(lost.unsigned_abs()),
        };
        t.row(vec![text::clean(&short(&hop.at)).into(), way.into(), frames.into(), lost.into()]);
    }
    t
}

/// A place of many ways, with the first of them only.
fn short(at: &str) -> String {
    let ends: Vec<&str> = at.split('+').collect();
    match ends.len() {
        0..=4 => at.to_owned(),
        many => format!("{}+{}+{} more", ends[0], ends[1], many - 2),
    }
}

/// The place between two hops. Where frames are spread, ways that wait are left out.
fn between(from: &str, to: &str) -> String {
    let (left, right) = chain::moved(from, to);
    let node = |end: &&str| end.split_once(':').map(|(node, _)| node.to_owned());
    let one =
        left.first().and_then(node).filter(|one| left.iter().chain(&right).all(|end| node(end).as_ref() == Some(one)));
    let ports = |ends: &[&str]| {
        let ports: Vec<&str> = ends.iter().filter_map(|end| end.split_once(':')).map(|(_, port)| port).collect();
        ports.join(", ")
    };
    match one.filter(|node| node != "tester") {
        Some(node) => format!("in {node} from port {} to {}", ports(&left), ports(&right)),
        None => format!("between {} and {}", left.join(", "), right.join(", ")),
    }
}

/// Places of a loss that are named.
const PLACES: usize = 4;

/// Where the frames of a direction were lost, in a sentence.
fn where_lost(hops: &[HopLoss]) -> String {
    let ends = hops.first().zip(hops.last());
    let Some((first, last)) = ends else { return String::new() };
    let way = format!("{} to {}", first.hop.at, last.hop.at);
    let total: i64 = hops.iter().filter_map(|hop| hop.lost).sum();
    if total <= 0 {
        return format!("{way}: no frame was lost");
    }
    let mut places: Vec<(i64, String)> = Vec::new();
    let (mut before, mut next) = (first, 1);
    for (n, hop) in hops.iter().enumerate().skip(1) {
        let Some(lost) = hop.lost else { continue };
        let name = match n == next {
            true => between(&before.hop.at, &hop.hop.at),
            // What is between them is unknown: they need not be neighbours.
            false => format!("between {} and {}", before.hop.at, hop.hop.at),
        };
        if lost > 0 {
            places.push((lost, name));
        }
        (before, next) = (hop, n + 1);
    }
    places.sort_by_key(|(lost, _)| std::cmp::Reverse(*lost));
    let of = |(lost, name): &(i64, String)| format!("{} {name}", num::thousands(lost.unsigned_abs()));
    let others: i64 = places.iter().skip(PLACES).map(|(lost, _)| lost).sum();
    // Frames of an earlier trial that came late are counted by the next one's hops.
    let more = places.iter().map(|(lost, _)| lost).sum::<i64>() - total;
    let mut places: Vec<String> = places.iter().take(PLACES).map(of).collect();
    if others > 0 {
        places.push(format!("{} elsewhere", num::thousands(others.unsigned_abs())));
    }
    if more > 0 {
        places
            .push(format!("less {} that a hop had and the one before it had not", num::thousands(more.unsigned_abs())));
    }
    format!("{way}: {} frames lost: {}", num::thousands(total.unsigned_abs()), places.join(", "))
}

#[cfg(test)]
mod tests {
    use measure::schema::lab::Hop;

    use super::*;

    #[test]
    fn a_place_is_named_without_the_ways_that_wait() {
        for (from, to, place) in [
            ("tester:0", "br0:1", "between tester:0 and br0:1"),
            ("tester:0", "tester:1", "between tester:0 and tester:1"),
            ("br0:1", "br0:3", "in br0 from port 1 to 3"),
            ("br0:1", "br0:3+br0:5", "in br0 from port 1 to 3, 5"),
            ("br0:4+br0:6", "br0:4+br0:7", "in br0 from port 6 to 7"),
            ("br0:4+br0:7", "br0:4+vm3:0", "between br0:7 and vm3:0"),
            ("vm1:0+vm2:0", "vm1:1+vm2:1", "between vm1:0, vm2:0 and vm1:1, vm2:1"),
        ] {
            assert_eq!(between(from, to), place);
        }
        assert_eq!(
            (short("a:1+a:2+a:3+a:4").as_str(), short("a:1+a:2+a:3+a:4+a:5").as_str()),
            ("a:1+a:2+a:3+a:4", "a:1+a:2+3 more")
        );
    }

    #[test]
    fn the_place_of_a_loss_is_named() {
        let hop = |at: &str, way, frames| Hop { at: at.to_owned(), way, frames };
        let hops = [
            hop("tester:0", HopWay::Out, Some(1_000)),
            hop("br0:1", HopWay::In, Some(990)),
            hop("br0:3", HopWay::Out, None),
            hop("vm1:0", HopWay::In, Some(890)),
            hop("vm1:1", HopWay::Out, Some(888)),
            hop("tester:1", HopWay::In, Some(888)),
        ];
        insta::assert_snapshot!(where_lost(&losses(&hops)), @"tester:0 to tester:1: 112 frames lost: 100 between br0:1 and vm1:0, 10 between tester:0 and br0:1, 2 in vm1 from port 0 to 1");
        // Within one node, and not neighbours.
        let unknown = [
            hop("br0:1", HopWay::In, Some(9)),
            hop("br0:3", HopWay::Out, None),
            hop("br0:4", HopWay::In, None),
            hop("br0:2", HopWay::Out, Some(2)),
        ];
        insta::assert_snapshot!(where_lost(&losses(&unknown)), @"br0:1 to br0:2: 7 frames lost: 7 between br0:1 and br0:2");
        let counted = |(n, frames)| hop(&format!("a{n}:0"), HopWay::In, Some(frames));
        let many: Vec<Hop> = [90, 80, 71, 63, 56, 50, 45, 47].into_iter().enumerate().map(counted).collect();
        insta::assert_snapshot!(where_lost(&losses(&many)), @"a0:0 to a7:0: 43 frames lost: 10 between a0:0 and a1:0, 9 between a1:0 and a2:0, 8 between a2:0 and a3:0, 7 between a3:0 and a4:0, 11 elsewhere, less 2 that a hop had and the one before it had not");
        let whole = hops.map(|hop| Hop { frames: Some(5), ..hop });
        insta::assert_snapshot!(where_lost(&losses(&whole)), @"tester:0 to tester:1: no frame was lost");
        assert_eq!(refused_before(0), "");
        insta::assert_snapshot!(refused_before(1_200), @"; 1,200 more were refused by the tester's port, whose queue was full");
        let lines = format!("{:?}", table(&[losses(&whole)]).rows());
        assert_eq!(lines, "6");
    }
}
