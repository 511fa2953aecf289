//! Rates for a reader.

/// `12.34M` and the like.
pub(super) fn si(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    if unit.is_empty() {
        format!("{scaled:.0}")
    } else {
        format!("{scaled:.2}{unit}")
    }
}
