//! Which loads are clean.

use units::Fps;

use crate::schema::{check::CheckLoad, evidence::SliceEvidence};

/// Least share of the time in slices that count, of a trial that shows anything: as a search by slices has it.
pub(super) const CLEAN_SHARE: f64 = 0.1;
/// Least share of the load that must have been offered in these slices.
const OFFERED: f64 = 0.995;

/// Whether a trial shows that its load passes: enough slices count, and in those the whole load was offered and nothing
/// was lost.
fn passes(load: Fps, e: &SliceEvidence) -> bool {
    let share = e.clean_s / (e.clean_s + e.aside_s);
    share >= CLEAN_SHARE && e.lost == 0 && e.offered_fps.get() >= load.get() * OFFERED
}

/// Adds a trial at a load to the others, which stay in order of the load.
pub fn load(all: &mut Vec<CheckLoad>, load_fps: Fps, e: &SliceEvidence) {
    let new = CheckLoad {
        load_fps,
        offered_fps: e.offered_fps,
        trials: 1,
        passed: u32::from(passes(load_fps, e)),
        clean_share: Some(e.clean_s / (e.clean_s + e.aside_s)).filter(|s| s.is_finite()).unwrap_or(0.0).clamp(0.0, 1.0),
        lost: e.lost,
    };
    match all.iter_mut().find(|other| other.load_fps == load_fps) {
        Some(other) => {
            let n = f64::from(other.trials);
            let mean = |old: f64, new: f64| (old * n + new) / (n + 1.0);
            *other = CheckLoad {
                load_fps,
                offered_fps: Fps::from_raw(mean(other.offered_fps.get(), new.offered_fps.get())),
                trials: other.trials + 1,
                passed: other.passed + new.passed,
                clean_share: mean(other.clean_share, new.clean_share),
                lost: other.lost.saturating_add(new.lost),
            };
        }
        None => {
            all.push(new);
            all.sort_by(|a, b| a.load_fps.get().total_cmp(&b.load_fps.get()));
        }
    }
}

impl CheckLoad {
    /// At least half of its trials show that it passes.
    pub fn is_clean(&self) -> bool {
        self.trials > 0 && self.passed.saturating_mul(2) >= self.trials
    }
}

/// The highest load that is clean.
pub fn highest_clean(loads: &[CheckLoad]) -> Option<Fps> {
    let clean = loads.iter().filter(|load| load.is_clean() && load.load_fps > Fps::ZERO).map(|load| load.load_fps);
    clean.max_by(|a, b| a.get().total_cmp(&b.get()))
}
