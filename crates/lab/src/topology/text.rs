//! The texts of a topology: they go into scripts, command lines and terminals.

use super::Topology;

/// What [`is_name`] takes.
pub(crate) const NAME_RULE: &str = "1 to 40 letters, digits, `-`, `_` or `.`, a letter or digit first";

/// Whether this can be the name of a topology and of a lab.
pub(crate) fn is_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.len() <= 40 && name.chars().all(letters) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

impl Topology {
    /// Checks all texts that are not names of nodes.
    ///
    /// # Errors
    ///
    /// One sentence: which text, what is wrong, what is legal.
    pub(super) fn check_texts(&self) -> Result<(), String> {
        let Self { name, description, source, plan, .. } = self;
        if !is_name(name) {
            return Err(format!("name = {name:?}: must be {NAME_RULE}"));
        }
        let of_topology = [("description", description), ("source", source)].map(|(key, text)| (key.to_owned(), text));
        let plan = plan.iter().map(|text| ("plan".to_owned(), text));
        let disks = self.guest.iter().filter_map(|g| Some((format!("guest {:?}: disk", g.name), g.disk.as_ref()?)));
        // A disk goes into scripts as a word, where `$` stands for something.
        if let Some((key, disk)) = disks.clone().find(|(_, disk)| disk.contains('$')) {
            return Err(format!("{key} {disk:?}: must be without `$`"));
        }
        for (key, text) in of_topology.into_iter().chain(plan).chain(disks) {
            if let Some(c) = text.chars().find(|c| c.is_control()) {
                return Err(format!("{key} has the control character {c:?}: must be one line of printable text"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::topology;

    #[test]
    fn texts_are_one_line_of_printable_text() {
        let refused = |change: &dyn Fn(&mut topology::Topology)| {
            let mut topology = topology::load("phy-vm-phy").unwrap();
            change(&mut topology);
            topology.check().unwrap_err()
        };
        let lines = [
            refused(&|t| t.name = "../own x".into()),
            refused(&|t| t.name = "-x".into()),
            refused(&|t| t.name = "x".repeat(41)),
            refused(&|t| t.description = "a\necho PWNED".into()),
            refused(&|t| t.source = "\u{1b}[2J".into()),
            refused(&|t| t.plan = Some("x\r".into())),
            refused(&|t| t.guest[0].disk = Some("/x\ny".into())),
        ];
        insta::assert_snapshot!(lines.join("\n"));
    }
}
