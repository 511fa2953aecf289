//! A plan as text: which core does what, then the changes with their reasons.

use host::{cpu_set, tuning::HostPlan};

/// The map of cores and the changes.
pub fn render(plan: &HostPlan) -> String {
    let cores = &plan.cores;
    let mut out = format!("for {}, NUMA node {}\n\n", cores.purpose.name(), cores.node);
    let mut line = |role: &str, cpus: &str| out += &format!("  {role:<18} CPU {cpus}\n");
    for (role, cpus) in cores.roles() {
        line(&role, &cpu_set::to_list(cpus));
    }
    if !cores.isolated.is_empty() {
        line("isolated", &cpu_set::to_list(&cores.isolated));
    }
    if cores.shared {
        out += "  too few CPUs: the operating system shares them with what polls\n";
    }
    let (later, now): (Vec<_>, Vec<_>) = plan.steps.iter().partition(|step| step.change.needs_reboot());
    if !now.is_empty() {
        out += &format!("\nnow ({}), until the next boot or linerate host revert:\n", now.len());
        now.iter().for_each(|step| out += &format!("  {}\n      {}: {}\n", step.change.text(), step.id, step.why));
    }
    if !later.is_empty() {
        out += &format!("\nat the next boot, or by hand ({}):\n", later.len());
        later.iter().for_each(|step| out += &format!("  {}\n      {}: {}\n", step.change.text(), step.id, step.why));
    }
    if plan.steps.is_empty() {
        out += "\nnothing to change\n";
    }
    out
}
