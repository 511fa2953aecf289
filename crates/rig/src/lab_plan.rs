//! A lab that is brought up for a plan has the queues and the polling threads of the plan's document.

use failure::Failure;
use lab::{
    cpus::CpuLayout,
    topology::{is_needed, Topology},
    LabOptions,
};
use measure::plan::Needs;

/// A plan, and what its document's testbed has.
pub struct ForPlan {
    /// Its name or file.
    pub plan: String,
    /// What it needs.
    pub needs: Needs,
}

/// Which flags the user gave.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// The number of queues.
    pub queues: bool,
    /// The number of polling threads, or their CPUs.
    pub pmds: bool,
}

/// These variables with those of the plan where the user gave none, if the topology is the plan's. `cpus` are those that the lab
/// may use; none: they are another host's.
///
/// # Errors
///
/// (machine) for fewer CPUs than the plan has polling threads: the user may choose fewer.
pub fn filled(
    options: LabOptions,
    topology: &Topology,
    asked: &ForPlan,
    given: Given,
    cpus: &[u32],
) -> Result<LabOptions, Failure> {
    let ForPlan { plan, needs } = asked;
    if !needs.topology.as_ref().is_some_and(|by_plan| is_needed(by_plan, &topology.name)) {
        return Ok(options);
    }
    let pmds = needs.switch_threads().iter().min().copied().filter(|_| !given.pmds && !topology.switch.is_empty());
    let queues = needs.queues.filter(|_| !given.queues).unwrap_or(options.queues);
    let options = LabOptions { queues, pmds: pmds.unwrap_or(options.pmds), ..options };
    options.check()?;
    let fits = |pmds| CpuLayout::choose(topology, &LabOptions { pmds, ..options.clone() }, cpus).is_ok();
    if pmds.is_none() || cpus.is_empty() || fits(options.pmds) {
        return Ok(options);
    }
    // With room for none it is not the plan that asks for too much: the lab says what is missing.
    let Some(room) = (1..options.pmds).rev().find(|pmds| fits(*pmds)) else { return Ok(options) };
    let (threads, name) = (options.pmds, &topology.name);
    let counted = |n: u32, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    Err(Failure::machine(format!(
        "plan {plan} is for {} of the switch (--pmds) and {} of each port (--queues), and this machine has CPUs for {}: choose \
         yourself, and the result says that it is another testbed: linerate lab run {name} --pmds {room} --queues {queues} --plan \
         {plan}, and your other flags",
        counted(threads, "polling thread"),
        counted(queues, "queue"),
        counted(room, "thread"),
    )))
}

#[cfg(test)]
mod tests {
    use failure::Exit;
    use lab::topology;
    use measure::plan::Plan;

    use super::*;

    #[test]
    fn a_lab_for_a_plan_has_its_queues_and_threads_or_those_that_were_chosen() {
        let topology = |name: &str| topology::load(name).unwrap();
        let needs = |toml: &str| ForPlan {
            plan: "own".into(),
            needs: Plan::from_toml(&format!("needs = {{ {toml} }}")).unwrap().needs,
        };
        let chain = needs("topology = 'PHY-VM-VM-PHY', cores = [4, 2], queues = 2");
        let of = |name: &str, given: Given, cpus: u32| {
            let cpus: Vec<u32> = (0..cpus).collect();
            let options = filled(LabOptions::default(), &topology(name), &chain, given, &cpus);
            options.map(|options| (options.queues, options.pmds)).map_err(|failure| failure.exit)
        };
        let given = |queues, pmds| Given { queues, pmds };
        assert_eq!(of("phy-vm-vm-phy", given(false, false), 8), Ok((2, 2)));
        assert_eq!(of("phy-vm-vm-phy", given(false, false), 0), Ok((2, 2)), "of another host");
        assert_eq!(of("phy-vm-vm-phy", given(true, true), 8), Ok((1, 1)));
        assert_eq!(of("phy-vm-phy", given(false, false), 8), Ok((1, 1)), "another topology");
        assert_eq!(of("phy-vm-vm-phy", given(false, false), 2), Err(Exit::Machine));
        assert_eq!(of("phy-vm-vm-phy", given(false, true), 2), Ok((2, 1)));
        // Cores of the guests are not threads of the switch.
        let loggers = needs("topology = '12 x PHY-LOGGER', cores = [12]");
        let given = given(false, false);
        let options = filled(LabOptions::default(), &topology("flow-loggers-12"), &loggers, given, &[0, 1]).unwrap();
        assert_eq!(options.pmds, 1);
    }
}
