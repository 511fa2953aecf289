//! The result itself, as `docs/results-schema.md` describes it.
//!
//! What repeats what other fields say is left out of the file: counters of zero, and nodes of the data plane that were never
//! called. A discarded trial keeps its counts, what disturbed it and why it is invalid, not its delays, slices and nodes: on
//! a busy machine there are hundreds.

use std::io;

use measure::{
    repeat::RepeatResult,
    result::RunResult,
    sweep::SweepResult,
    trial::{Purpose, TrialRecord},
};
use serde::Serialize;
use serde_json::ser::Formatter;

/// Levels of nesting that have a line for each value: the fields of a run, and the elements of its lists.
const LEVELS: usize = 2;

/// The result as JSON with a newline at its end: a line for each field of the run, for each frame size and for each trial.
///
/// # Errors
/// Never for a result that was built from finite figures; the signature says what the serialiser says.
pub fn render(result: &RunResult) -> Result<String, serde_json::Error> {
    written(&stored(result), LEVELS)
}

/// The result of a sweep in the same way.
///
/// # Errors
/// As [`render`].
pub fn sweep(sweep: &SweepResult) -> Result<String, serde_json::Error> {
    let mut sweep = sweep.clone();
    sweep.points.iter_mut().for_each(|point| point.result = stored(&point.result));
    written(&sweep, LEVELS + 3)
}

/// The results of several runs in the same way. Only latency trials keep the distribution of delays: a thousand runs fit in
/// a file.
///
/// # Errors
/// As [`render`].
pub fn repeat(repeat: &RepeatResult) -> Result<String, serde_json::Error> {
    let mut repeat = repeat.clone();
    for run in &mut repeat.runs {
        run.trials.iter_mut().for_each(slim);
        let others = run.trials.iter_mut().filter(|trial| trial.spec.purpose != Purpose::AtThroughput);
        others.for_each(without_histograms);
    }
    written(&repeat, LEVELS + 2)
}

/// The result as a file holds it.
pub fn stored(result: &RunResult) -> RunResult {
    let mut result = result.clone();
    result.trials.iter_mut().for_each(slim);
    result
}

fn slim(trial: &mut TrialRecord) {
    // The one trial of `linerate trial` is shown whole, valid or not.
    if !trial.valid() && trial.spec.purpose != Purpose::Single {
        trial.evidence = None;
        trial.directions.iter_mut().for_each(|d| (d.latency, d.windows) = (None, Vec::new()));
        trial.dut.iter_mut().for_each(|dut| dut.nodes.clear());
    }
    if let Some(dut) = &mut trial.dut {
        dut.counters.retain(|_, n| *n > 0);
        dut.nodes.retain(|node| node.calls > 0);
    }
}

fn without_histograms(trial: &mut TrialRecord) {
    trial.directions.iter_mut().filter_map(|d| d.latency.as_mut()).for_each(|l| l.histogram = Vec::new());
}

fn written(value: &impl Serialize, levels: usize) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value
        .serialize(&mut serde_json::Serializer::with_formatter(&mut out, Lines { levels, depth: 0, filled: false }))?;
    out.push(b'\n');
    String::from_utf8(out).map_err(|e| serde::ser::Error::custom(e.to_string()))
}

/// Indents the outer levels, and writes what is within without white space.
struct Lines {
    levels: usize,
    depth: usize,
    /// The array or object has a value.
    filled: bool,
}

impl Lines {
    fn begin<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.filled && self.depth < self.levels {
            self.line(writer)?;
        }
        self.filled = true;
        writer.write_all(bracket)
    }

    fn separate<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.depth <= self.levels {
            self.line(writer)?;
        }
        Ok(())
    }

    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b" "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.depth <= self.levels { b": " } else { b":" })
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outer_levels_have_lines_and_inner_ones_none() {
        let value = json!({ "a": [], "b": [{ "c": [1, 2], "d": {} }, 3], "e": { "f": { "g": "h, i: j" } } });
        let text = written(&value, LEVELS).unwrap();
        insta::assert_snapshot!(text, @r#"
        {
         "a": [],
         "b": [
          {"c":[1,2],"d":{}},
          3
         ],
         "e": {
          "f": {"g":"h, i: j"}
         }
        }
        "#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
