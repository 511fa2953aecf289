//! One flag, set by Ctrl-C, SIGTERM and SIGHUP. Packet loops read it once a burst.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    thread,
    time::Duration,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
    iterator::Signals,
};

use crate::Failure;

/// How long a stop may take before another Ctrl-C ends the process at once. Two within this time are one: a shell and a
/// wrapper often both send it.
const GRACE: Duration = Duration::from_secs(1);

/// A handle on the flag; clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over the signals. A Ctrl-C ends the process at once, with exit code 130, if another came a second or more
    /// before. SIGTERM and SIGHUP never do: a closed terminal sends more than one signal, and what the process made must be
    /// removed.
    ///
    /// # Errors
    ///
    /// (failed) when a signal cannot be caught.
    pub fn on_signals() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        let fail = |signal| move |e| Failure::failed(format!("cannot catch signal {signal}: {e}"));
        let hanging = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&hanging)).map_err(fail(SIGINT))?;
        let mut interrupts = Signals::new([SIGINT]).map_err(fail(SIGINT))?;
        let arm = move || {
            if interrupts.forever().next().is_some() {
                thread::sleep(GRACE);
                hanging.store(true, Ordering::Relaxed);
            }
        };
        thread::Builder::new()
            .name("second-ctrl-c".to_owned())
            .spawn(arm)
            .map_err(|e| Failure::failed(format!("cannot start a thread: {e}")))?;
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
