//! `--flows`: a number of flows, or a program of them.

use std::str::FromStr;

use traffic::flows::FlowSpec;

/// `--flows`: a number, or a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowsArg {
    /// A number of distinct 5-tuples.
    Count(u64),
    /// A program of known flows.
    Program(FlowSpec),
}

impl FromStr for FlowsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            return text.parse().map(Self::Program).map_err(|e: traffic::flows::FlowSpecError| e.to_string());
        }
        text.parse().map(Self::Count).map_err(|_| {
            format!(
                "{text:?} is neither a whole number nor a program (constant:N, zipf:N, churn:RATE, scan:HOSTS,PORTS)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_a_number_or_a_program() {
        assert_eq!("1000".parse(), Ok(FlowsArg::Count(1000)));
        assert_eq!("constant:1k".parse(), Ok(FlowsArg::Program(FlowSpec::Constant { flows: 1000 })));
        assert!("many".parse::<FlowsArg>().is_err());
    }
}
