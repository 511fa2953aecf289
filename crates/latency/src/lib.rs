//! Round trips of applications: messages, replies, percentiles with their uncertainty.
#![forbid(unsafe_code)]

pub mod asked;
pub mod disturbed;
pub mod message;
pub mod noise;
pub mod open_loop;
pub mod patience;
pub mod pingpong;
pub mod result;
pub mod server;
pub mod socket;
pub mod summary;
pub mod tally;

/// Pins the thread that calls to a CPU.
///
/// # Errors
///
/// As the system says: no such CPU, or it may not be used.
pub fn pin(cpu: u32) -> std::io::Result<()> {
    use rustix::thread::{sched_setaffinity, CpuSet};
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!("must be below {}", CpuSet::MAX_CPU),
        ));
    }
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    Ok(sched_setaffinity(None, &only)?)
}
