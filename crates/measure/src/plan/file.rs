//! A plan in a file: read from TOML, written as TOML and as JSON.

use super::{
    document::Plan,
    error::PlanError,
    search::{Method, SearchPlan},
};

impl Plan {
    /// Reads a plan. Errors, in one line, on text that is not TOML, on unknown keys and on values of a wrong type.
    pub fn from_toml(toml: &str) -> Result<Self, PlanError> {
        let plan: Self = toml::from_str(toml).map_err(|e| PlanError::from_toml(toml, &e))?;
        if plan.search.method == Method::Mlrsearch {
            // Given is given, even if it says the default.
            let table: toml::Table = toml::from_str(toml).map_err(|e| PlanError::from_toml(toml, &e))?;
            let given = table.get("search").and_then(toml::Value::as_table).into_iter().flatten();
            if let Some((key, value)) = given.into_iter().find(|(key, _)| SearchPlan::is_of_goals(key)) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                return Err(SearchPlan::of_goals(key, text));
            }
        }
        Ok(plan)
    }

    /// The plan as a file would hold it, every default explicit; a comment names the keys that are left open.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        let mut text =
            toml::to_string(self).map_err(|e| PlanError::Toml { place: String::new(), problem: e.to_string() })?;
        if self.search.method == Method::Mlrsearch {
            text = without_goal_keys(&text);
        }
        for (open, comment) in [
            (self.search.upper.is_none(), "search.upper is not set: the line rate, or what the tester can do"),
            (self.link.speed.is_none(), "link.speed is not set: what the ports report"),
            (self.dut.function.is_none(), "dut.function is not set: l3, when no ports are given"),
        ] {
            if open {
                text.push_str(&format!("# {comment}\n"));
            }
        }
        Ok(text)
    }

    /// The plan as a result stores it: what [`Plan::to_toml`] says, as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let mut plan = serde_json::to_value(self).unwrap_or_default();
        if self.search.method == Method::Mlrsearch {
            if let Some(search) = plan.get_mut("search").and_then(serde_json::Value::as_object_mut) {
                search.retain(|key, _| !SearchPlan::is_of_goals(key));
            }
        }
        plan
    }
}

/// The text without the keys of `[search]` that MLRsearch does not read.
fn without_goal_keys(toml: &str) -> String {
    let mut in_search = false;
    let keep = |line: &&str| {
        if line.starts_with('[') {
            in_search = *line == "[search]";
        }
        let key = line.split(' ').next().unwrap_or_default();
        !(in_search && SearchPlan::is_of_goals(key))
    };
    toml.lines().filter(keep).map(|line| format!("{line}\n")).collect()
}
