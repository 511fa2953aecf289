//! Several runs of a plan against several earlier ones: medians, and whether their difference is beyond noise.

use measure::{
    repeat::{RepeatResult, RepeatedFigures, RepeatedSize},
    result::RunResult,
};
use units::derived;

use super::{
    compare::{other_places, BEYOND, NOTHING},
    differences::differences,
};
use crate::{
    document::Section,
    names, num, sheet,
    table::{Cell, Table},
    text,
};

/// Most runs that are proposed: as many as may be asked for.
const MOST_RUNS: f64 = 1000.0;

/// A row a frame size: the median of the new runs, that of the old ones, the improvement in percent, and whether it is
/// beyond noise.
///
/// # Errors
/// Why the two do not compare, a reason each.
pub fn compare_repeats(new: &RepeatResult, old: &RepeatResult) -> Result<Section, Vec<String>> {
    let (Some(run), Some(was)) = (new.runs.first(), old.runs.first()) else {
        return Err(vec!["one of them holds no run".to_owned()]);
    };
    let reasons = differences(run, was);
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let mut t = Table::default();
    t.right(0, "frame", "B");
    for which in ["new", "old"] {
        t.right(1, which, "median pps");
        t.right(1, which, "runs");
    }
    t.right(2, "Improvement", "%");
    t.left(2, "difference", "");
    let (mut notes, mut compared, mut beyond) = (Vec::new(), 0, false);
    for size in &new.sizes {
        let Some(before) = old.sizes.iter().find(|s| s.frame_size_bytes == size.frame_size_bytes) else { continue };
        let mut row: Vec<Cell> = vec![size.frame_size_bytes.to_string().into()];
        for of in [size, before] {
            row.push(of.figures.map(|f| num::pps(f.median_fps)).into());
            row.push(num::thousands(of.answered as u64).into());
        }
        match improvement((new, size), (old, before)) {
            Ok((percent, noise)) => {
                compared += 1;
                beyond |= noise == BEYOND;
                row.extend([Cell::bold(num::percent(percent)), noise.into()]);
            }
            Err(why) => {
                row.extend([Cell::from("-"), Cell::default()]);
                notes.push(format!("{}: {why}", size.frame_size_bytes.with_unit("B")));
            }
        }
        t.row(row);
    }
    if compared == 0 {
        return Err(notes);
    }
    for (at, (which, result)) in [("new", run), ("old", was)].into_iter().enumerate() {
        let parts = [names::dut(result), result.host.hostname.clone(), result.started_at.clone()];
        let parts = parts.map(|part| text::clip(&text::clean(&part), 60));
        notes.insert(at, format!("{which}: {}", parts.join(", ")));
    }
    if beyond {
        notes.push("beyond noise: the means differ by more than their 95 % intervals explain".to_owned());
    }
    Ok(sheet::of(format!("{}: new against old", text::clean(&new.plan_name)), t, notes))
}

/// What the runs of a result found at a frame size.
type Of<'a> = (&'a RepeatResult, &'a RepeatedSize);

/// The way from core to core, ns: the median of its runs.
fn way((result, size): Of<'_>) -> Option<f64> {
    let of_size =
        |run: &RunResult| run.sizes.iter().find(|s| s.frame_size_bytes == size.frame_size_bytes)?.core_to_core;
    let mut all: Vec<f64> = result.runs.iter().filter_map(of_size).map(|seen| seen.median_ns).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// The improvement of the median in percent, and whether it is beyond noise; or why there is none.
fn improvement(new: Of<'_>, old: Of<'_>) -> Result<(f64, String), String> {
    let (ways, [new, old]) = ([way(new), way(old)], [new.1, old.1]);
    let (Some(now), Some(then)) = (&new.figures, &old.figures) else {
        return Err("one of them has no figure".to_owned());
    };
    if new.device_limits < new.answered || old.device_limits < old.answered {
        return Err("some figures are not limits of the device: a highest load or the tester set them".to_owned());
    }
    if let [Some(new_ns), Some(old_ns)] = ways {
        if let Some(why) = other_places(new_ns, old_ns) {
            return Err(why);
        }
    }
    let percent = derived::gain_percent(now.median_fps.get(), then.median_fps.get())
        .ok_or_else(|| "the old figure is 0".to_owned())?;
    Ok((percent, noise(now, then, new.answered.min(old.answered))))
}

/// Whether the means differ by more than the errors of both explain, and how many runs would decide otherwise: an error
/// shrinks with the root of their number.
fn noise(new: &RepeatedFigures, old: &RepeatedFigures, runs: usize) -> String {
    let (Some(a), Some(b)) = (new.mean_error_fps, old.mean_error_fps) else { return String::new() };
    let apart = (new.mean_fps.get() - old.mean_fps.get()).abs();
    let error = a.get().hypot(b.get());
    if apart > error {
        return BEYOND.to_owned();
    }
    if apart < NOTHING * new.mean_fps.get() {
        return "within noise".to_owned();
    }
    let wanted = (runs as f64 * (error / apart).powi(2)).ceil().max(runs as f64 + 1.0);
    match wanted <= MOST_RUNS {
        true => format!("within noise; {wanted:.0} runs of each would decide"),
        false => "within noise".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use units::Fps;

    use super::*;

    fn figures(mean: f64, error: Option<f64>) -> RepeatedFigures {
        let fps = Fps::from_raw(mean);
        RepeatedFigures {
            median_fps: fps,
            min_fps: fps,
            max_fps: fps,
            mean_fps: fps,
            mean_error_fps: error.map(Fps::from_raw),
            relative_stddev: 0.01,
        }
    }

    #[test]
    fn a_difference_is_noise_within_both_errors() {
        let of = |a: (f64, f64), b: (f64, f64)| noise(&figures(a.0, Some(a.1)), &figures(b.0, Some(b.1)), 10);
        assert_eq!(of((100.0, 3.0), (106.0, 4.0)), "beyond noise");
        assert_eq!(of((106.0, 4.0), (100.0, 3.0)), "beyond noise");
        // An error of 5, apart by 2.5: four times the runs.
        assert_eq!(of((100.0, 3.0), (102.5, 4.0)), "within noise; 40 runs of each would decide");
        assert_eq!(of((100.0, 3.0), (105.0, 4.0)), "within noise; 11 runs of each would decide");
        assert_eq!(of((100.0, 3.0), (100.0, 4.0)), "within noise");
        // So little is not worth a run, however few would tell it.
        assert_eq!(of((100.0, 0.1), (100.04, 0.1)), "within noise");
        assert_eq!(noise(&figures(1.0, None), &figures(2.0, Some(0.1)), 1), "");
    }
}
