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
    /// Takes over the signals. A second Ctrl-C ends the process at once, with exit code 130. SIGTERM and SIGHUP never do: a
    /// closed terminal sends more than one signal, and what the process made must be removed.
    ///
    /// # Errors
    ///
    /// (failed) when a signal cannot be caught.
    pub fn on_signals() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        let fail = |signal| move |e| Failure::failed(format!("cannot catch signal {signal}: {e}"));
        // Before the flag is set by the same signal: the order counts.
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&flag)).map_err(fail(SIGINT))?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&flag)).map_err(fail(signal))?;
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
