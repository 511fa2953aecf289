//! Closures on worker lcores.

use std::{
    any::Any,
    ffi::{c_int, c_void},
    marker::PhantomData,
    panic::{catch_unwind, resume_unwind, AssertUnwindSafe},
    sync::{atomic::Ordering, Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dpdk_sys as sys;

use crate::{
    busy, log,
    realtime::{raise_control, raise_polling, Scheduling},
    DpdkError, Eal,
};

/// The lcore this thread is; `None` on a thread that is not EAL's, where pools are slow.
pub fn current_lcore() -> Option<u32> {
    // SAFETY: reads a thread-local variable.
    let id = unsafe { sys::lr_lcore_id() };
    (id != u32::MAX).then_some(id)
}

type Payload = Box<dyn Any + Send>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Eal {
    /// Runs closures on worker lcores that may borrow from here, as [`std::thread::scope`] does with threads.
    ///
    /// All of them have returned when this returns. A panic of one that was not joined goes on here.
    pub fn scope<'env, R>(&'static self, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
        self.scope_as(Scheduling::Ordinary, f)
    }

    /// [`Eal::scope`] with its closures scheduled like this, and the calling thread above them until they have returned.
    /// They are ordinary threads all the same when the kernel refuses: see [`crate::check_realtime`].
    pub fn scope_as<'env, R>(
        &'static self,
        scheduling: Scheduling,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        // Never loops without a thread above them.
        let above = raise_control(scheduling);
        let scheduling = if above.is_some() { scheduling } else { Scheduling::Ordinary };
        let scope = Scope { scheduling, jobs: Mutex::new(Vec::new()), scope: PhantomData, env: PhantomData };
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        let jobs = std::mem::take(&mut *lock(&scope.jobs));
        // Every job, before any of their results is looked at.
        jobs.iter().for_each(|job| job.wait());
        drop(above);
        let panics: Vec<Payload> = jobs.iter().filter_map(|job| job.discard()).collect();
        match (result, panics.into_iter().next()) {
            (Err(payload), _) | (Ok(_), Some(payload)) => resume_unwind(payload),
            (Ok(value), None) => value,
        }
    }
}

/// Where closures are launched; see [`Eal::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    scheduling: Scheduling,
    // Their 'scope is forgotten; `Eal::scope` empties the list before it ends.
    jobs: Mutex<Vec<Arc<dyn Running>>>,
    // Invariant in both, as in std.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What an lcore is handed: the work, and where to say that it is done.
struct Job {
    lcore: u32,
    scheduling: Scheduling,
    work: Box<dyn FnOnce() + Send>,
    slot: Arc<dyn Running>,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a closure on an idle worker lcore. Errors when there is no such worker or it is at work.
    pub fn launch<T, F>(&'scope self, lcore: u32, f: F) -> Result<JobHandle<'scope, T>, DpdkError>
    where
        T: Send + 'scope,
        F: FnOnce() -> T + Send + 'scope,
    {
        let refuse = |why: String| DpdkError::Lcore { lcore, why };
        // SAFETY: these read EAL's configuration.
        let (main, enabled) = unsafe { (sys::lr_lcore_main(), sys::lr_lcore_enabled(lcore) != 0) };
        if lcore == main {
            return Err(refuse("the main lcore: call the function directly".into()));
        }
        let busy =
            busy::flag(lcore).filter(|_| enabled).ok_or_else(|| refuse("DPDK was not started with it".into()))?;
        if busy.swap(true, Ordering::AcqRel) {
            return Err(refuse("busy".into()));
        }
        let slot =
            Arc::new(Slot { lcore, state: Mutex::new(Progress { done: false, result: None }), done: Condvar::new() });
        let result = Arc::clone(&slot);
        let work: Box<dyn FnOnce() + Send + 'scope> = Box::new(move || {
            let value = catch_unwind(AssertUnwindSafe(f));
            lock(&result.state).result = Some(value);
        });
        let running: Arc<dyn Running + 'scope> = slot.clone();
        // SAFETY: the lifetimes are forgotten, not outlived: `Eal::scope` waits for every job, even when it unwinds,
        // and the job signals after it has dropped `work`. The slot may be dropped a little later, by the lcore, but
        // `Eal::scope` or the join has taken the result out of it, so nothing of 'scope is left inside.
        let (work, running) = unsafe {
            (
                std::mem::transmute::<Box<dyn FnOnce() + Send + 'scope>, Box<dyn FnOnce() + Send>>(work),
                std::mem::transmute::<Arc<dyn Running + 'scope>, Arc<dyn Running>>(running),
            )
        };
        let scheduling = self.scheduling;
        let arg: *mut Job = Box::into_raw(Box::new(Job { lcore, scheduling, work, slot: Arc::clone(&running) }));
        let err = loop {
            // SAFETY: `run` takes the box back, exactly once, if and only if the launch succeeds.
            match unsafe { sys::lr_launch(Some(run), arg.cast(), lcore) } {
                // Our last job there is done, but EAL's loop has not come round yet.
                // Asleep: this thread may be above that one, on the same CPU.
                EBUSY if scheduling == Scheduling::Realtime => std::thread::sleep(Duration::from_micros(20)),
                EBUSY => std::thread::yield_now(),
                err => break err,
            }
        };
        if err != 0 {
            // SAFETY: the launch failed, so the box is still ours.
            drop(unsafe { Box::from_raw(arg) });
            busy.store(false, Ordering::Release);
            return Err(refuse(format!("did not start: {}", log::errno_text(err))));
        }
        lock(&self.jobs).push(running);
        Ok(JobHandle { slot, scope: PhantomData })
    }
}

const EBUSY: c_int = -16;

extern "C" fn run(arg: *mut c_void) -> c_int {
    // SAFETY: `arg` is the box `launch` gave away, and this runs once for it.
    let Job { lcore, scheduling, work, slot } = *unsafe { Box::from_raw(arg.cast::<Job>()) };
    // It catches its own panics: none may reach C.
    let raised = raise_polling(scheduling);
    work();
    drop(raised);
    if let Some(busy) = busy::flag(lcore) {
        busy.store(false, Ordering::Release);
    }
    slot.signal();
    0
}

/// A closure at work on a worker lcore.
pub struct JobHandle<'scope, T> {
    slot: Arc<Slot<T>>,
    scope: PhantomData<&'scope ()>,
}

impl<T: Send> JobHandle<'_, T> {
    /// Waits for the closure, asleep, and returns what it returned; [`DpdkError::Panicked`] if it panicked.
    pub fn join(self) -> Result<T, DpdkError> {
        self.slot.wait();
        let result = lock(&self.slot.state).result.take();
        match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(payload)) => Err(DpdkError::Panicked { lcore: self.slot.lcore, message: message(&payload) }),
            None => Err(DpdkError::Lcore { lcore: self.slot.lcore, why: "left no result".into() }),
        }
    }

    /// Whether [`JobHandle::join`] would return at once.
    pub fn is_finished(&self) -> bool {
        lock(&self.slot.state).done
    }

    /// The lcore it runs on.
    pub fn lcore(&self) -> u32 {
        self.slot.lcore
    }
}

struct Slot<T> {
    lcore: u32,
    state: Mutex<Progress<T>>,
    done: Condvar,
}

struct Progress<T> {
    done: bool,
    result: Option<Result<T, Payload>>,
}

trait Running: Send + Sync {
    /// Sleeps until the job is done: `rte_eal_wait_lcore` would spin, perhaps on the very CPU the work needs.
    fn wait(&self);
    fn signal(&self);
    /// Drops the result, if it is still there; returns the panic, if it is one.
    fn discard(&self) -> Option<Payload>;
}

impl<T: Send> Running for Slot<T> {
    fn wait(&self) {
        let state = lock(&self.state);
        drop(self.done.wait_while(state, |s| !s.done).unwrap_or_else(PoisonError::into_inner));
    }
    fn signal(&self) {
        lock(&self.state).done = true;
        self.done.notify_all();
    }
    fn discard(&self) -> Option<Payload> {
        let result = lock(&self.state).result.take();
        result.and_then(Result::err)
    }
}

fn message(payload: &Payload) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_string()
}
