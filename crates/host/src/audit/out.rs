//! Where a rule puts what it finds.

use super::finding::{Finding, Group, Verdict};

/// Takes what a rule finds.
#[derive(Debug)]
pub struct Out {
    id: &'static str,
    group: Group,
    why: &'static str,
    effect: Option<&'static str>,
    findings: Vec<Finding>,
}

impl Out {
    /// Nothing yet, of the rule with this id.
    pub fn new(id: &'static str, group: Group, why: &'static str, effect: Option<&'static str>) -> Self {
        Self { id, group, why, effect, findings: Vec::new() }
    }

    /// What was found.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// Something is there that should be something else, or is as it should be.
    pub fn found(
        &mut self,
        verdict: Verdict,
        place: &str,
        got: impl Into<String>,
        want: impl Into<String>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            id: self.id.to_owned(),
            group: self.group,
            verdict,
            place: place.to_owned(),
            got: got.into(),
            want: want.into(),
            why: self.why.to_owned(),
            effect: self.effect.map(str::to_owned),
            outcome: false,
            mend: Vec::new(),
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Whether something was found in this place.
    pub fn has(&self, place: &str) -> bool {
        self.findings.iter().any(|finding| finding.place == place)
    }

    /// Whether nothing was found yet.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// The finding that was put here last, if it is open.
    pub fn last_open(&mut self) -> Option<&mut Finding> {
        self.findings.last_mut().filter(|finding| finding.is_open())
    }

    /// As it should be.
    pub fn ok(&mut self, place: &str, got: impl Into<String>) {
        self.found(Verdict::Ok, place, got, "");
    }

    /// Kept, not judged.
    pub fn noted(&mut self, place: &str, got: impl Into<String>) {
        self.found(Verdict::Noted, place, got, "");
    }

    /// The machine does not have it, and how that is seen.
    pub fn not_applicable(&mut self, place: &str, why: impl Into<String>) {
        self.found(Verdict::NotApplicable, place, why, "");
    }

    /// It cannot be read, and what it needs.
    pub fn unknown(&mut self, place: &str, why: impl Into<String>) {
        self.found(Verdict::Unknown, place, why, "");
    }
}
