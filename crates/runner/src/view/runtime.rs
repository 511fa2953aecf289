//! `show runtime`: what each node of each lcore costs.

use dataplane::runtime::{CoreRuntime, NodeRow};

use units::si_column as si;

use super::counters::Counters;
use crate::text::Columns;

/// The tables of all lcores, with an empty line below each.
pub(super) fn text(counters: &Counters<'_>) -> String {
    let runtime = counters.runtime();
    let lcores = runtime.lcores.iter().enumerate();
    lcores.map(|(n, core)| rates(counters, n, core) + &nodes(core, counters.hz) + "\n").collect()
}

/// What an lcore polls, and its rates: one line.
pub(super) fn rates(counters: &Counters<'_>, n: usize, core: &CoreRuntime) -> String {
    let cpu = counters.info.cpus.get(n).map_or(String::new(), |cpu| format!(" (CPU {cpu})"));
    let queues = counters.info.polled.iter().filter(|p| p.lcore == n).map(|p| format!("{}:{}", p.port, p.queue));
    format!(
        "lcore {}{cpu}, queues {}, over {:.1} s: in {}pps, out {}pps, drop {}pps, punt {}pps\n",
        n + 1,
        queues.collect::<Vec<_>>().join(" "),
        core.duration_s,
        si(core.rx_fps),
        si(core.tx_fps),
        si(core.drop_fps),
        si(core.punt_fps),
    )
}

/// A line of names, a line for each node, and their sum: one line.
pub(super) fn nodes(core: &CoreRuntime, hz: u64) -> String {
    let mut table = Columns::new(&[
        "<node",
        "calls",
        "vectors",
        "suspends",
        "clocks/vector",
        "vectors/call",
        "clocks/call",
        "core %",
    ]);
    for row in &core.nodes {
        let NodeRow { calls, vectors, .. } = row;
        let per = |n: u64, value: f64| if n == 0 { "-".to_owned() } else { format!("{value:.1}") };
        // The clocks of a node that was called and never timed are unknown, which is not 0.
        let timed = |n: u64, value: f64| if row.clocks == 0 { "-".to_owned() } else { per(n, value) };
        table.row(&[
            row.name,
            &calls.to_string(),
            &vectors.to_string(),
            &row.suspends.map_or("-".to_owned(), |s| s.to_string()),
            &timed(*vectors, row.clocks_per_vector),
            &per(*vectors, row.vectors_per_call),
            &timed(*calls, row.clocks_per_call),
            &if *calls > 0 { timed(*calls, 100.0 * row.share) } else { "0.0".to_owned() },
        ]);
    }
    format!(
        "{}{:.1} clocks/packet x {}pps = {:.2} of {:.2} GHz; {:.1} % busy, {:.1} vectors a busy poll, {}polls/s\n",
        table.text(),
        core.cycles_per_frame,
        si(core.rx_fps),
        core.busy_hz / 1e9,
        hz as f64 / 1e9,
        100.0 * core.busy_share,
        core.frames_per_busy_poll,
        si(core.polls_per_s),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_never_timed_has_no_clocks_to_show() {
        let row = |name, calls, clocks| NodeRow { name, calls, vectors: calls, clocks, ..NodeRow::default() };
        let timed = NodeRow { clocks_per_vector: 20.0, clocks_per_call: 20.0, share: 0.5, ..row("timed", 2, 40) };
        let rows = vec![timed, row("untimed", 2, 0), row("uncalled", 0, 0)];
        let text = nodes(&CoreRuntime { nodes: rows, ..CoreRuntime::default() }, 1000);
        let cells: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[1], ["timed", "2", "2", "-", "20.0", "0.0", "20.0", "50.0"]);
        assert_eq!(cells[2], ["untimed", "2", "2", "-", "-", "0.0", "-", "-"]);
        assert_eq!(cells[3], ["uncalled", "0", "0", "-", "-", "-", "-", "0.0"]);
    }
}
