//! Requests on the control socket.

use serde::{Deserialize, Serialize};

/// Most lines of one load.
pub const MAX_LOAD: u64 = 8 << 20;

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Counters or a table.
    Show {
        /// Which counters or table.
        what: String,
        /// Whether the answer is data; else text.
        #[serde(default)]
        json: bool,
        /// Most rows.
        #[serde(default)]
        limit: Option<usize>,
        /// Rates over the last so many seconds; 0: since the start.
        #[serde(default)]
        interval_s: Option<f64>,
    },
    /// Changes of the tables, all or none: each a line of text.
    Apply(Vec<String>),
    /// So many changes, which follow one a line, all or none.
    Load(u64),
    /// Whether to stop.
    Stop(bool),
    /// The command that runs, `forward` or `flowlog`.
    Command,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_one_form() {
        let show: Request = serde_json::from_str(r#"{"show":{"what":"runtime"}}"#).unwrap();
        assert_eq!(show, Request::Show { what: "runtime".into(), json: false, limit: None, interval_s: None });
        assert!(serde_json::from_str::<Request>(r#"{"show":{"what":"runtime","more":1}}"#).is_err());
        assert!(serde_json::from_str::<Request>("{}").is_err());
    }
}
