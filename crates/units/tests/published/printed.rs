//! A figure as printed: its value, and how far the real one may lie from it.

use units::parse_si;

/// A figure as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed {
    pub value: f64,
    /// One of the last digit printed.
    unit: f64,
    /// What the text's own prefix stands for: 1e6 in `3.28Mpps`.
    scale: f64,
    decimals: usize,
}

impl Printed {
    pub fn read(text: &str) -> Self {
        let plain = text.replace(',', "");
        let (value, _) = parse_si(&plain).unwrap_or_else(|| panic!("{text:?} is not a number"));
        let digits: String = plain.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let bare: f64 = digits.parse().unwrap();
        let scale = if bare == 0.0 { 1.0 } else { value / bare };
        let decimals = digits.split_once('.').map_or(0, |(_, d)| d.len());
        Self { value, unit: 10_f64.powi(-(decimals as i32)) * scale, scale, decimals }
    }

    /// The same figure in a unit so many times as large.
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, unit: self.unit * factor, scale: self.scale * factor, ..self }
    }

    /// With one decimal more.
    pub fn finer(self) -> Self {
        Self { unit: self.unit / 10.0, decimals: self.decimals + 1, ..self }
    }

    /// Where a figure that was rounded to this may lie.
    pub fn range(self) -> (f64, f64) {
        (self.value - self.unit / 2.0, self.value + self.unit / 2.0)
    }

    /// Whether something in this range, rounded or cut, is printed like this.
    pub fn covers(self, (low, high): (f64, f64)) -> bool {
        let slack = self.unit * 1e-6;
        low < self.value + self.unit - slack && high > self.value - self.unit / 2.0 - slack
    }

    /// Another figure in this one's unit and with its decimals, thousands separated.
    pub fn like(self, value: f64) -> String {
        let text = format!("{:.*}", self.decimals, value / self.scale);
        let (whole, rest) = text.split_once('.').map_or((text.as_str(), String::new()), |(w, r)| (w, format!(".{r}")));
        let mut out = String::new();
        for (i, c) in whole.chars().enumerate() {
            if i > 0 && (whole.len() - i) % 3 == 0 {
                out.push(',');
            }
            out.push(c);
        }
        out + &rest
    }
}

/// One printed figure held against ours.
pub struct Finding {
    /// Document and table, or where a single figure stands.
    pub table: String,
    pub row: String,
    pub printed: String,
    pub ours: String,
    pub reproduced: bool,
    /// What the data says of it: what ours gives, and the likely cause.
    pub listed: Option<(String, String)>,
}

impl Finding {
    /// What is wrong with the data, or with our arithmetic.
    pub fn fault(&self) -> Option<String> {
        let at = format!("{}: {}: printed {}, ours {}", self.table, self.row, self.printed, self.ours);
        match (&self.listed, self.reproduced) {
            (None, true) => None,
            (None, false) => Some(format!("{at}: not reproduced, and not listed as inconsistent")),
            (Some(_), true) => Some(format!("{at}: listed as inconsistent, and it is not")),
            (Some((computed, _)), false) if bare(computed) != bare(&self.ours) => {
                Some(format!("{at}: listed as {computed}"))
            }
            (Some(_), false) => None,
        }
    }

    /// Its row in the documentation, if it is listed.
    pub fn row(&self) -> Option<String> {
        let (computed, cause) = self.listed.as_ref()?;
        Some(format!("| {} | {} | {} | {computed} | {cause} |", self.table, self.row, self.printed))
    }
}

fn bare(figure: &str) -> String {
    figure.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect()
}
