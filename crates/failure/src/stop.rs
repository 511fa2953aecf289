//! One flag, set by Ctrl-C, SIGTERM and SIGHUP. Packet loops read it once a burst.

use std::sync::{
    atomic::{AtomicBool, Ordering},
    Arc,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

use crate::Failure;

/// A handle on the flag; clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over the signals. A second signal ends the process at once, with exit code 130.
    ///
    /// # Errors
    ///
    /// (failed) when a signal cannot be caught.
    pub fn on_signals() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
                .and_then(|_| flag::register(signal, Arc::clone(&flag)))
                .map_err(|e| Failure::failed(format!("cannot catch signal {signal}: {e}")))?;
        }
        Ok(Self(flag))
    }

    /// A flag without signals, for tests.
    pub fn simulated(requested: bool) -> Self {
        Self(Arc::new(AtomicBool::new(requested)))
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for what outlives a borrow.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
