//! What pictures are drawn on: text, lines and shapes at pixels.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{
    error::SvgError,
    palette::{Stroke, INK, SOFT},
};

/// Width of every picture, pixels.
pub(super) const WIDTH: u32 = 960;
/// Height of one panel, pixels.
pub(super) const PANEL: u32 = 460;

/// Where a text hangs from its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A white sheet in pixels, origin at the top left.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

fn refused(e: impl std::fmt::Display) -> SvgError {
    SvgError(e.to_string())
}

impl<'a> Canvas<'a> {
    pub(super) fn new(out: &'a mut String, width: u32, height: u32) -> Result<Self, SvgError> {
        let area = SVGBackend::with_string(out, (width, height)).into_drawing_area();
        area.fill(&WHITE).map_err(refused)?;
        Ok(Self { area })
    }

    pub(super) fn finish(&self) -> Result<(), SvgError> {
        self.area.present().map_err(refused)
    }

    pub(super) fn text(
        &self,
        text: &str,
        at: (i32, i32),
        size: i32,
        colour: RGBColor,
        anchor: Anchor,
    ) -> Result<(), SvgError> {
        self.styled(text, at, ("sans-serif", size).into_font(), colour, anchor)
    }

    pub(super) fn bold(&self, text: &str, at: (i32, i32), size: i32) -> Result<(), SvgError> {
        self.styled(text, at, ("sans-serif", size, FontStyle::Bold).into_font(), INK, Anchor::Start)
    }

    /// Text that reads upwards, centred on its point: the name of a vertical axis.
    pub(super) fn upwards(&self, text: &str, at: (i32, i32), size: i32) -> Result<(), SvgError> {
        let font = ("sans-serif", size).into_font().transform(FontTransform::Rotate270);
        self.styled(text, at, font, SOFT, Anchor::Middle)
    }

    fn styled(
        &self,
        text: &str,
        at: (i32, i32),
        font: FontDesc<'_>,
        colour: RGBColor,
        anchor: Anchor,
    ) -> Result<(), SvgError> {
        let h = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(h, VPos::Center));
        self.area.draw(&Text::new(crate::text::clean(text), at, style)).map_err(refused)
    }

    pub(super) fn line(&self, points: Vec<(i32, i32)>, colour: RGBColor, width: u32) -> Result<(), SvgError> {
        self.area.draw(&PathElement::new(points, colour.stroke_width(width))).map_err(refused)
    }

    /// A line of a series, with its colour and dashes.
    pub(super) fn curve(&self, points: &[(i32, i32)], stroke: Stroke, width: u32) -> Result<(), SvgError> {
        stroke.parts(points).into_iter().try_for_each(|part| self.line(part, stroke.colour, width))
    }

    pub(super) fn fill(&self, corners: [(i32, i32); 2], colour: RGBColor) -> Result<(), SvgError> {
        self.area.draw(&Rectangle::new(corners, colour.filled())).map_err(refused)
    }

    pub(super) fn frame(&self, corners: [(i32, i32); 2], colour: RGBColor) -> Result<(), SvgError> {
        self.area.draw(&Rectangle::new(corners, colour.stroke_width(2))).map_err(refused)
    }

    pub(super) fn dot(&self, at: (i32, i32), colour: RGBColor) -> Result<(), SvgError> {
        self.area.draw(&Circle::new(at, 4, colour.filled())).map_err(refused)
    }
}

/// The plot proper inside a panel: left, top, right, bottom in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plot {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

/// Pixels that a character of a line's name takes at most, and what stands in front of the name.
const NAME: (i32, i32) = (8, 60);

impl Plot {
    /// Where a plot ends that has the names of its lines beside it: the margin is at least so wide, and holds the longest
    /// name up to half of the sheet.
    pub(super) fn right_beside<'a>(names: impl Iterator<Item = &'a str>, least: i32) -> i32 {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0).min(64) as i32;
        let width = WIDTH as i32;
        width - (longest * NAME.0 + NAME.1).clamp(least, width / 2)
    }

    /// The pixel a share (0 to 1) of the width lies at.
    pub(super) fn x(&self, share: f64) -> i32 {
        self.left + (share.clamp(0.0, 1.0) * f64::from(self.right - self.left)).round() as i32
    }

    /// The pixel a share (0 to 1) of the height lies at, from the bottom.
    pub(super) fn y(&self, share: f64) -> i32 {
        self.bottom - (share.clamp(0.0, 1.0) * f64::from(self.bottom - self.top)).round() as i32
    }
}

/// A round step that cuts `0..=max` into 4 to 8 parts: 1, 2, 2.5 or 5 times a power of ten.
pub(super) fn step(max: f64) -> f64 {
    let rough = (max / 7.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn steps_are_round_and_few() {
        for (max, expected) in [(14.88e6, 2.5e6), (1.0, 0.2), (9.9e5, 2e5), (6e6, 1e6)] {
            assert!((step(max) / expected - 1.0).abs() < 1e-9, "{max}: {}", step(max));
        }
    }
}
