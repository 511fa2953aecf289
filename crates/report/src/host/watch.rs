//! What came to each core in an interval, as lines.

use host::watch::{Came, CoreWatch};

use crate::{num, style::Style, table::Table, text};

/// Names shown in a cell.
const NAMES: usize = 3;

/// A row a core: threads in milliseconds a second.
pub fn render(cores: &[CoreWatch], style: &Style) -> String {
    let mut t = Table::default();
    t.left(0, "CPU", "");
    t.right(1, "interrupts", "/s");
    t.right(1, "in them", "ms/s");
    t.right(1, "steal", "ms/s");
    t.left(2, "by", "/s");
    t.left(2, "soft", "/s");
    t.left(2, "threads", "ms/s");
    for core in cores {
        let per_second = |count: f64| count / core.seconds.max(1e-9);
        let sum: u64 = core.interrupts.iter().map(|came| came.times).sum();
        let ms = |seconds: f64| num::trim(per_second(seconds) * 1e3, 0);
        let threads = core.threads.as_ref().map_or_else(
            || "not looked at".to_owned(),
            |threads| {
                let shown = threads.iter().take(NAMES).map(|thread| {
                    let (name, pid) = (text::clean(&thread.name), thread.pid);
                    if thread.kernel {
                        format!("[{name}] {}", ms(thread.seconds))
                    } else {
                        format!("{name}({pid}) {}", ms(thread.seconds))
                    }
                });
                shown.collect::<Vec<_>>().join(", ")
            },
        );
        t.row(vec![
            core.cpu.to_string().into(),
            num::thousands(per_second(sum as f64).round() as u64).into(),
            ms(core.interrupt_seconds).into(),
            ms(core.steal_seconds).into(),
            names(&core.interrupts, core.seconds).into(),
            names(&core.softirqs, core.seconds).into(),
            threads.into(),
        ]);
    }
    t.text(style)
}

fn names(came: &[Came], seconds: f64) -> String {
    let one =
        |came: &Came| format!("{} {}", text::clean(&came.name), num::trim(came.times as f64 / seconds.max(1e-9), 0));
    came.iter().take(NAMES).map(one).collect::<Vec<_>>().join(", ")
}
