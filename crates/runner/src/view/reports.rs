//! Views made of several: the live view, and the final report as text or data.

use serde_json::{json, Value};

use super::{counters::Counters, drops::DropTotals, ports, runtime};
use crate::live_view::LiveView;

/// The live view: ports, where the cycles go, and what was dropped.
pub(crate) fn live(counters: &Counters<'_>) -> LiveView {
    let runtime = counters.runtime();
    let title = &counters.info.title;
    let mut view = LiveView::new(format!("linerate {title}, {:.0} s; Ctrl-C ends it", counters.elapsed.as_secs_f64()));
    view.add_always("\n");
    view.add_always(&ports::port_table(counters));
    view.add_queues(&ports::queue_table(counters));
    view.add_always("\n");
    for (n, core) in runtime.lcores.iter().enumerate() {
        view.add_always(&runtime::rates(counters, n, core));
        let text = runtime::nodes(core, runtime.tsc_hz);
        for (line, text) in text.lines().enumerate() {
            // Between the names of the columns and the sum.
            if (1..=core.nodes.len()).contains(&line) {
                view.add_nodes(text);
            } else {
                view.add_always(text);
            }
        }
        view.add_always("\n");
    }
    view.add_always(&DropTotals::of(&counters.now).text());
    view
}

/// The counters as data.
pub(crate) fn total(counters: &Counters<'_>) -> Result<Value, String> {
    let runtime = serde_json::to_value(counters.runtime()).map_err(|e| e.to_string())?;
    let mut value = json!({ "function": counters.info.function, "ports": ports::json(counters), "runtime": runtime });
    if let (Value::Object(value), Value::Object(drops)) = (&mut value, DropTotals::of(&counters.now).json()) {
        value.extend(drops);
    }
    Ok(value)
}

/// The counters as text.
pub(crate) fn summary(counters: &Counters<'_>) -> String {
    format!("{}\n{}{}", ports::text(counters), runtime::text(counters), DropTotals::of(&counters.now).text())
}
