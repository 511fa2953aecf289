//! Raw frames over any port.

use std::time::{Duration, SystemTime};

use failure::{Failure, Stop};
use latency::{
    asked::BackgroundRate,
    raw::{packet_socket::Stamps, result::RawResult, run::RawOptions},
};
use rig::{host_plan::open_for, raw_mtu, MachineOptions, RawBench, RawSize, RawWay};

/// Raw frames, as a user asks for them.
#[derive(Debug)]
pub struct RawAsk {
    /// Cores and memory.
    pub machine: MachineOptions,
    /// Ports: none, or where frames go out and where they come in.
    pub ports: Vec<String>,
    /// Whose time stamps count, instead of the clock of the program.
    pub stamps: Option<Stamps>,
    /// Whether AF_XDP ports without zero-copy are refused.
    pub zero_copy: bool,
    /// From when a frame is there to when it is handed over again.
    pub forward: bool,
    /// Bytes of frames without FCS, one after the other.
    pub sizes: Vec<usize>,
    /// How each size is measured.
    pub options: RawOptions,
    /// Frames of the same size beside.
    pub background: Option<BackgroundRate>,
    /// How long the links may take.
    pub link_wait: Duration,
}

/// Measures raw frames. What was measured before an error is in the result, with the error.
///
/// # Errors
///
/// Those of [`RawBench::new`] and [`RawWay::parse`]; and those of [`RawBench::measure`] where nothing was measured before.
pub fn raw(ask: &RawAsk, stop: &Stop) -> Result<(RawResult, Option<Failure>), Failure> {
    let mut way = RawWay::parse(&ask.ports)?;
    if let Some(stamps) = ask.stamps {
        way = way.with_stamps(stamps)?;
    }
    raw_mtu::check(&way, &ask.sizes)?;
    let mut bench = RawBench::new(&ask.machine, way.specs(), ask.link_wait)?;
    bench.zero_copy = ask.zero_copy;
    let mut result = begun(&bench);
    result.findings = Some(open_for([bench.cpu].into(), way.specs()));
    let with_background = |bytes: usize| RawOptions {
        background: ask.background.map(|rate| rate.messages(bytes)),
        ..ask.options.clone()
    };
    let options: Vec<RawOptions> = ask.sizes.iter().map(|&bytes| with_background(bytes)).collect();
    let sizes: Vec<RawSize<'_>> = ask
        .sizes
        .iter()
        .zip(&options)
        .map(|(&bytes, options)| RawSize { bytes, forward: ask.forward, options })
        .collect();
    let failed = bench.measure(&way, &sizes, stop, &mut result.rows).err();
    ended(&mut result, &bench);
    match failed {
        Some(failure) if result.rows.is_empty() => Err(failure),
        failed => Ok((result, failed)),
    }
}

/// A result without measurements.
pub(super) fn begun(bench: &RawBench) -> RawResult {
    let facts = &bench.facts;
    RawResult {
        started_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        hostname: facts.hostname.clone(),
        cpu_model: facts.cpu_model.clone(),
        kernel: facts.kernel.clone(),
        memory_locked: bench.memory_locked,
        warnings: bench.warnings(),
        ..RawResult::new(bench.cpu)
    }
}

fn ended(result: &mut RawResult, bench: &RawBench) {
    result.timing = bench.timing();
    result.fit();
}
