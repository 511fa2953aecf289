//! Which CPU polls for whom.

use failure::Failure;

/// CPUs of the polling cores. The control thread floats over all that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPlan {
    /// The tester's.
    pub tester: u32,
    /// The built-in DUT's, or the one to probe the way to; `None` on a one-CPU machine.
    pub other: Option<u32>,
}

impl CpuPlan {
    /// Chooses among `allowed` (rising): the tester takes the last, the DUT the one before it, so that the first,
    /// which takes most interrupts, is left to the rest of the machine where there are three.
    ///
    /// Errors (usage) when a CPU asked for is not allowed or both are the same; errors (machine) when a built-in DUT
    /// has no CPU of its own.
    pub fn choose(allowed: &[u32], tester: Option<u32>, dut: Option<u32>, builtin: bool) -> Result<Self, Failure> {
        let list = || allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        for (flag, cpu) in [("--tester-cpu", tester), ("--dut-cpu", dut)] {
            if let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) {
                return Err(Failure::usage(format!("{flag} {cpu}: this process may use CPUs {}", list())));
            }
        }
        if tester.is_some() && tester == dut {
            return Err(Failure::usage(format!(
                "--tester-cpu and --dut-cpu are both {}: two polling loops on one CPU would starve each other",
                dut.unwrap_or_default()
            )));
        }
        let last_but = |not: Option<u32>| allowed.iter().rev().copied().find(|&cpu| Some(cpu) != not);
        let tester = tester.or_else(|| last_but(dut)).or_else(|| allowed.last().copied()).unwrap_or(0);
        let other = dut.or_else(|| last_but(Some(tester)));
        if builtin && other.is_none() {
            return Err(Failure::machine(format!(
                "the built-in data plane needs a CPU beside the tester's, and this process may use only CPU {}: \
                 allow two (taskset -c 0,1 linerate ...), or measure an outside device with --port",
                list()
            )));
        }
        Ok(Self { tester, other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tester_takes_the_last_and_the_dut_the_one_before() {
        let plan = CpuPlan::choose(&[0, 1, 2], None, None, true).unwrap();
        assert_eq!(plan, CpuPlan { tester: 2, other: Some(1) });
        let plan = CpuPlan::choose(&[0, 1], None, Some(1), true).unwrap();
        assert_eq!(plan, CpuPlan { tester: 0, other: Some(1) });
    }

    #[test]
    fn impossible_wishes_are_refused() {
        assert_eq!(CpuPlan::choose(&[3], None, None, true).unwrap_err().exit, failure::Exit::Machine);
        assert_eq!(CpuPlan::choose(&[3], None, None, false).unwrap(), CpuPlan { tester: 3, other: None });
        let text = CpuPlan::choose(&[0, 1], Some(7), None, true).unwrap_err().text;
        assert!(text.contains("CPUs 0,1"), "{text}");
        assert!(CpuPlan::choose(&[0, 1], Some(1), Some(1), true).is_err());
    }
}
