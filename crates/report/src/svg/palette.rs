//! Colours of pictures, and how series are told apart.

use plotters::style::RGBColor;

pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const SKY: RGBColor = RGBColor(86, 180, 233);
pub(super) const ORANGE: RGBColor = RGBColor(213, 94, 0);
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
pub(super) const SOFT: RGBColor = RGBColor(102, 102, 102);
pub(super) const GRID: RGBColor = RGBColor(226, 226, 226);

/// Colours of series. The first seven are those of Okabe and Ito, which people with any kind of colour vision tell apart.
const COLOURS: [RGBColor; 12] = [
    BLUE,
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    ORANGE,
    SKY,
    RGBColor(60, 60, 60),
    RGBColor(51, 34, 136),
    RGBColor(136, 34, 85),
    RGBColor(153, 153, 51),
    RGBColor(140, 86, 75),
    RGBColor(160, 160, 160),
];
/// Pixels of a dash and of the gap behind it, once all colours are taken; 0 is a whole line.
const DASHES: [(f64, f64); 3] = [(0.0, 0.0), (10.0, 5.0), (3.0, 4.0)];

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub(super) colour: RGBColor,
    dash: (f64, f64),
}

impl Stroke {
    /// Of the series with this number, from 0: 36 are different.
    pub(super) fn of(series: usize) -> Self {
        let colour = COLOURS.get(series % COLOURS.len()).copied().unwrap_or(INK);
        let dash = DASHES.get(series / COLOURS.len() % DASHES.len()).copied().unwrap_or_default();
        Self { colour, dash }
    }

    /// The pieces of a line through these points that are drawn.
    pub(super) fn parts(self, points: &[(i32, i32)]) -> Vec<Vec<(i32, i32)>> {
        let (on, off) = self.dash;
        if on <= 0.0 {
            return vec![points.to_vec()];
        }
        let (mut parts, mut part): (Vec<Vec<(i32, i32)>>, Vec<(i32, i32)>) = (Vec::new(), Vec::new());
        let (mut drawing, mut left) = (true, on);
        for pair in points.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            let at = |along: f64| {
                let share = if length > 0.0 { along / length } else { 0.0 };
                ((a.0 + (b.0 - a.0) * share).round() as i32, (a.1 + (b.1 - a.1) * share).round() as i32)
            };
            let mut along = 0.0;
            if drawing && part.is_empty() {
                part.push(at(0.0));
            }
            while along + left < length {
                along += left;
                if drawing {
                    part.push(at(along));
                    parts.push(std::mem::take(&mut part));
                } else {
                    part.push(at(along));
                }
                drawing = !drawing;
                left = if drawing { on } else { off };
            }
            left -= length - along;
            if drawing {
                part.push(at(length));
            }
        }
        parts.extend((part.len() > 1).then_some(part));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_six_series_are_different() {
        let all: Vec<Stroke> = (0..36).map(Stroke::of).collect();
        for (i, a) in all.iter().enumerate() {
            assert!(all.iter().take(i).all(|b| a != b), "{i}");
        }
        for (i, a) in COLOURS.iter().enumerate() {
            for b in COLOURS.iter().take(i) {
                let off = [(a.0, b.0), (a.1, b.1), (a.2, b.2)].map(|(a, b)| i32::from(a) - i32::from(b));
                assert!(off.iter().map(|d| d * d).sum::<i32>() > 45 * 45, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn dashes_have_gaps() {
        let dashed = Stroke::of(12).parts(&[(0, 0), (20, 0), (32, 0)]);
        assert_eq!(dashed, [vec![(0, 0), (10, 0)], vec![(15, 0), (20, 0), (25, 0)], vec![(30, 0), (32, 0)]]);
        assert_eq!(Stroke::of(0).parts(&[(0, 0), (20, 0)]), [vec![(0, 0), (20, 0)]]);
    }
}
