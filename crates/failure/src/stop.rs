//! One flag that Ctrl-C, SIGTERM and SIGHUP set, and packet loops look at once a burst.

use std::sync::{
    atomic::{AtomicBool, Ordering},
    Arc,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

use crate::Failure;

/// Handle to the flag; clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over the signals. A second one while the first is being obeyed ends the process at once.
    pub fn on_signals() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
                .and_then(|_| flag::register(signal, Arc::clone(&flag)))
                .map_err(|e| Failure::failed(format!("cannot catch signal {signal}: {e}")))?;
        }
        Ok(Self(flag))
    }

    /// A flag of no signal, for tests.
    pub fn simulated(requested: bool) -> Self {
        Self(Arc::new(AtomicBool::new(requested)))
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag, for those that outlive a borrow.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
