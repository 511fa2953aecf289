//! Every rule, by what it is about.

mod boot;
mod cores;
mod firmware;
mod interrupts;
mod kernel;
mod kvm;
mod memory;
mod nic;
mod pcie;
mod power;
mod programs;
mod switch;

use crate::{
    audit::{Context, Finding, Out, Rule},
    core_plan::CorePlan,
    machine::Machine,
    pcie::PciePath,
    Roots,
};

pub use firmware::{Setting, SETTINGS};

/// All rules, in the order in which they are printed.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let files = [
        firmware::RULES,
        cores::RULES,
        power::RULES,
        boot::RULES,
        kernel::RULES,
        kvm::RULES,
        interrupts::RULES,
        memory::RULES,
        programs::RULES,
        nic::RULES,
        pcie::RULES,
        switch::RULES,
    ];
    files.into_iter().flatten()
}

/// The rule of an id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// Looks at every rule. `nics` are the PCI addresses that the plan is about; empty for all.
pub fn audit(roots: &Roots, machine: &Machine, plan: &CorePlan, nics: &[String]) -> Vec<Finding> {
    let context = Context::new(roots, machine, plan, nics);
    if roots.is_recording() {
        // `host pcie` reads these of a recording, also of a virtual machine, where no rule does.
        machine.nics.iter().for_each(|nic| drop(PciePath::read(roots, &nic.address)));
    }
    all().flat_map(|rule| look(rule, &context)).collect()
}

/// Looks at one rule.
pub fn look(rule: &'static Rule, context: &Context<'_>) -> Vec<Finding> {
    let mut out = Out::new(rule.id, rule.group, rule.why, rule.effect);
    match rule.bare_metal && context.machine.virtual_machine.is_some() {
        true => out.not_applicable("", "a virtual machine does not have it"),
        false => (rule.check)(context, &mut out),
    }
    out.into_findings()
}
