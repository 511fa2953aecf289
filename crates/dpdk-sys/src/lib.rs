//! DPDK as Rust sees it: bindgen output for one small C header, `shim/shim.h`.
//!
//! DPDK's packet path consists of inline functions, and its structures differ between versions. So nothing of DPDK is
//! bound directly. The shim wraps what is needed in functions for whole bursts and in plain structures of its own,
//! and exports the few `rte_mbuf` offsets as constants computed by the C compiler. `rte_mbuf`, `rte_mempool` and the
//! like are opaque here. The same sources build against DPDK 22.11, 23.11 and 24.11.
#![allow(missing_docs, non_camel_case_types, non_upper_case_globals, non_snake_case, clippy::all)]
#![allow(clippy::undocumented_unsafe_blocks)] // bindgen's, in the layout tests

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
