//! The check that no frame buffer is lost.

use dpdk::Mempool;
use failure::Failure;

/// Errors when a buffer of these pools is still out. To be called when every port is closed.
pub(crate) fn check_all_returned(pools: &[Mempool]) -> Result<(), Failure> {
    let missing: usize = pools.iter().map(|pool| pool.capacity() - pool.avail().min(pool.capacity())).sum();
    if missing > 0 {
        return Err(Failure::failed(format!("{missing} frame buffers did not come back to their pools")));
    }
    Ok(())
}
