//! A rule.

use super::{context::Context, finding::Group, out::Out};

/// Who asks for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The two-VM document, with a section.
    TwoVm(&'static str),
    /// The small-router document.
    SmallRouter,
    /// The low-latency guide, with a section.
    LowLatency(&'static str),
    /// The ONP 2.1 report, with a section.
    Onp(&'static str),
    /// The flow logger's document.
    FlowLogger,
    /// DPDK's guides.
    Dpdk,
    /// Profiles of tuned.
    Tuned,
    /// FD.io CSIT.
    Csit,
}

/// One thing that is looked at.
pub struct Rule {
    /// Its id, `kernel.watchdog`: what findings, effects and results name.
    pub id: &'static str,
    /// What it is about.
    pub group: Group,
    /// What it does to a figure.
    pub why: &'static str,
    /// What was published of its effect, with its source.
    pub effect: Option<&'static str>,
    /// Who asks for it.
    pub asked: &'static [Asked],
    /// Whether a virtual machine does not have it, whatever its files say.
    pub bare_metal: bool,
    /// Looks.
    pub check: fn(&Context<'_>, &mut Out),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.id).finish()
    }
}
