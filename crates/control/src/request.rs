//! What goes over the control socket.

use serde::{Deserialize, Serialize};

/// Most lines of one load.
pub const MAX_LOAD: u64 = 8 << 20;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Counters or a table.
    Show {
        /// Which.
        what: String,
        /// As data; else as text.
        #[serde(default)]
        json: bool,
        /// Most rows.
        #[serde(default)]
        limit: Option<usize>,
        /// Rates over the last so many seconds; 0: since the start.
        #[serde(default)]
        interval_s: Option<f64>,
    },
    /// Changes, all or none, each a line of the grammar.
    Apply(Vec<String>),
    /// Changes that follow, one a line: so many.
    Load(u64),
    /// End.
    Stop(bool),
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
