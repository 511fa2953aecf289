//! Which CPU polls for the tester, and which for the device.

use failure::Failure;

/// The CPUs of the polling cores. The control thread may run on every allowed CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPlan {
    /// The tester's.
    pub tester: u32,
    /// The built-in device's, or the one that the core-to-core probe goes to; `None` on a machine with one CPU.
    pub other: Option<u32>,
}

impl CpuPlan {
    /// Chooses among `allowed` (rising): the tester takes the last, the device the one before. The first, which takes most
    /// interrupts, stays free where there are three.
    ///
    /// # Errors
    ///
    /// (usage) when a requested CPU is not allowed, or both are the same; (machine) when a built-in device has no CPU of
    /// its own.
    pub fn choose(allowed: &[u32], tester: Option<u32>, dut: Option<u32>, builtin: bool) -> Result<Self, Failure> {
        let list = || allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        for (flag, cpu) in [("--tester-cpu", tester), ("--dut-cpu", dut)] {
            if let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) {
                return Err(Failure::usage(format!("{flag} {cpu}: this process may use CPUs {}", list())));
            }
        }
        if tester.is_some() && tester == dut {
            return Err(Failure::usage(format!(
                "--tester-cpu and --dut-cpu are both {}: two polling loops need two CPUs",
                dut.unwrap_or_default()
            )));
        }
        let last_but = |not: Option<u32>| allowed.iter().rev().copied().find(|&cpu| Some(cpu) != not);
        let tester = tester.or_else(|| last_but(dut)).or_else(|| allowed.last().copied()).unwrap_or(0);
        let other = dut.or_else(|| last_but(Some(tester)));
        if builtin && other.is_none() {
            return Err(Failure::machine(format!(
                "the built-in data plane needs a CPU of its own, and this process may use only CPU {}: allow two \
                 (taskset -c 0,1 linerate ...), or measure an outside device (--port)",
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
    fn impossible_choices_are_refused() {
        assert_eq!(CpuPlan::choose(&[3], None, None, true).unwrap_err().exit, failure::Exit::Machine);
        assert_eq!(CpuPlan::choose(&[3], None, None, false).unwrap(), CpuPlan { tester: 3, other: None });
        let wrong = CpuPlan::choose(&[0, 1], Some(7), None, true).unwrap_err();
        assert_eq!(wrong.exit, failure::Exit::Usage);
        insta::assert_snapshot!(wrong.text, @"--tester-cpu 7: this process may use CPUs 0,1");
        assert!(CpuPlan::choose(&[0, 1], Some(1), Some(1), true).is_err());
    }
}
