//! The plans built into the program, by name.

/// Every plan: its name and its text.
pub const PLANS: &[(&str, &str)] = &[
    ("rfc2544", include_str!("../../../../plans/rfc2544.toml")),
    ("ci", include_str!("../../../../plans/ci.toml")),
    ("nfvi-two-vm-1q2pmd", include_str!("../../../../plans/nfvi-two-vm-1q2pmd.toml")),
    ("nfvi-two-vm-2q4pmd", include_str!("../../../../plans/nfvi-two-vm-2q4pmd.toml")),
    ("router-u1", include_str!("../../../../plans/router-u1.toml")),
    ("router-u2", include_str!("../../../../plans/router-u2.toml")),
    ("router-u3", include_str!("../../../../plans/router-u3.toml")),
    ("router-u4", include_str!("../../../../plans/router-u4.toml")),
    ("router-b1", include_str!("../../../../plans/router-b1.toml")),
    ("router-b2", include_str!("../../../../plans/router-b2.toml")),
    ("router-b3", include_str!("../../../../plans/router-b3.toml")),
    ("router-b4", include_str!("../../../../plans/router-b4.toml")),
    ("router-all", include_str!("../../../../plans/router-all.toml")),
    ("onp-phy-phy", include_str!("../../../../plans/onp-phy-phy.toml")),
    ("onp-phy-ovs-phy", include_str!("../../../../plans/onp-phy-ovs-phy.toml")),
    ("onp-phy-vm-phy", include_str!("../../../../plans/onp-phy-vm-phy.toml")),
    ("onp-phy-vm-vm-phy", include_str!("../../../../plans/onp-phy-vm-vm-phy.toml")),
    ("onp-vxlan", include_str!("../../../../plans/onp-vxlan.toml")),
    ("onp-core-scaling", include_str!("../../../../plans/onp-core-scaling.toml")),
    ("onp-40g-scenario-1", include_str!("../../../../plans/onp-40g-scenario-1.toml")),
    ("onp-40g-scenario-2", include_str!("../../../../plans/onp-40g-scenario-2.toml")),
    ("onp-40g-scenario-3", include_str!("../../../../plans/onp-40g-scenario-3.toml")),
    ("rfc2544-all", include_str!("../../../../plans/rfc2544-all.toml")),
    ("rfc9004", include_str!("../../../../plans/rfc9004.toml")),
    ("rfc2889-addresses", include_str!("../../../../plans/rfc2889-addresses.toml")),
    ("soak", include_str!("../../../../plans/soak.toml")),
    ("flowlog-64b", include_str!("../../../../plans/flowlog-64b.toml")),
    ("flow-loggers-12", include_str!("../../../../plans/flow-loggers-12.toml")),
    ("reset", include_str!("../../../../plans/reset.toml")),
    ("recovery", include_str!("../../../../plans/recovery.toml")),
    ("vxlan-forward", include_str!("../../../../plans/vxlan-forward.toml")),
];

/// What plans were called before: the start of a name, and what stands for it now.
const RENAMED: (&str, &str) = ("small-router-", "router-");

/// The names, in the order of [`PLANS`].
pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(name, _)| *name)
}

/// The text of a plan; `None` when none has this name, or had it before.
pub fn text(name: &str) -> Option<&'static str> {
    let now = name.strip_prefix(RENAMED.0).map(|rest| format!("{}{rest}", RENAMED.1));
    let name = now.as_deref().unwrap_or(name);
    PLANS.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{suite, Plan, PlanError};

    #[test]
    fn every_plan_is_valid_and_named_as_listed() {
        let text_of = |name: &str| -> Result<_, PlanError> { Ok(text(name).unwrap_or_default().into()) };
        for (name, text) in PLANS {
            if let Some(found) = suite::read(name, text_of).unwrap() {
                assert_eq!(found.base.name, *name);
                for run in found.runs {
                    suite::member(name, &run, text_of).unwrap().validate().unwrap();
                }
                continue;
            }
            let plan = Plan::from_toml(text).unwrap();
            assert_eq!(plan.name, *name);
            plan.validate().unwrap();
        }
        assert_eq!(Plan::from_toml(text("rfc2544").unwrap()).unwrap(), Plan::default(), "the default is embedded");
    }

    #[test]
    fn a_name_of_before_still_finds_its_plan() {
        assert_eq!(text("small-router-b4"), text("router-b4"));
        assert!(text("router-b4").is_some() && text("nope").is_none());
        assert_eq!(names().count(), PLANS.len());
    }
}
