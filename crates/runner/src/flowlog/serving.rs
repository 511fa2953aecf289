//! The threads beside the packet path: export, clients, metrics.

use std::{net::TcpListener, sync::Arc};

use failure::Failure;
use flow::{
    export::{ExportEvent, ExportSpec, Exporter, Records},
    metrics::{MetricsServer, MetricsSpec},
    serve::{ServeSpec, Server, TlsSpec},
    Source,
};
use net::ServeError;
use rig::device::Logged;

use super::spec::FlowlogSpec;
use crate::output::Note;

/// The servers of clients and metrics. [`Logged`] has the exporter, which ends before them.
pub struct Serving {
    flows: Option<Server>,
    metrics: Option<MetricsServer>,
}

impl Serving {
    /// Starts all threads, on CPUs that do not poll if there are others.
    ///
    /// # Errors
    ///
    /// (machine) when a thread cannot be started or an address is taken.
    pub fn start(
        spec: &FlowlogSpec,
        name: &str,
        logged: &Arc<Logged>,
        ended: Vec<Box<dyn Records>>,
        note: &Note,
    ) -> Result<Self, Failure> {
        // A thread may use the CPUs of the thread that starts it.
        std::thread::scope(|s| {
            let start = || {
                leave_cpus(&spec.cpus);
                Self::start_here(spec, name, logged, ended, note)
            };
            s.spawn(start).join().unwrap_or_else(|_| Err(Failure::failed("a thread for clients panicked")))
        })
    }

    fn start_here(
        spec: &FlowlogSpec,
        name: &str,
        logged: &Arc<Logged>,
        ended: Vec<Box<dyn Records>>,
        note: &Note,
    ) -> Result<Self, Failure> {
        let config = &spec.config;
        let export = ExportSpec {
            sinks: spec.sinks.clone(),
            domain: config.domain.unwrap_or_else(|| domain(name)),
            biflow: spec.is_biflow(),
            distinguish: config.distinguish.into(),
            ports: logged.interfaces().to_vec(),
            sampling: spec.sampling,
            details: config.details,
            queue: (spec.flows * spec.cpus.len()).clamp(1 << 18, 1 << 22),
            ..ExportSpec::default()
        };
        let note = Arc::clone(note);
        let log = Arc::new(move |event: &ExportEvent| note(&event.to_string()));
        let exporter = Exporter::start(&export, ended, log).map_err(|e| {
            Failure::machine(format!("cannot start a thread for export: {e}: allow more processes (ulimit -u)"))
        })?;
        logged.export(exporter);
        let source = || Arc::clone(logged) as Arc<dyn Source>;
        let tls = (!config.tls_cert.as_os_str().is_empty())
            .then(|| TlsSpec { cert: config.tls_cert.clone(), key: config.tls_key.clone() });
        let flows = spec.listen.map(|listen| {
            let serve = ServeSpec { name: name.to_owned(), token: spec.token.clone(), tls, ..ServeSpec::new(listen) };
            Server::start(&serve, source())
        });
        let flows = flows.transpose()?;
        let metrics = spec
            .metrics
            .map(|listen| MetricsServer::start(&MetricsSpec { listen, token: spec.token.clone() }, source()));
        Ok(Self { flows, metrics: metrics.transpose()? })
    }

    /// Where it can be read, each followed by a semicolon.
    pub fn describe(&self) -> String {
        let flows = self.flows.as_ref().map(|s| format!("flows at {}; ", s.local_addr()));
        let metrics = self.metrics.as_ref().map(|s| format!("metrics at {}; ", s.local_addr()));
        flows.unwrap_or_default() + &metrics.unwrap_or_default()
    }
}

/// Refuses addresses that are taken, before anything else is done.
pub fn check_addresses(spec: &FlowlogSpec) -> Result<(), Failure> {
    for listen in [spec.listen, spec.metrics].into_iter().flatten() {
        TcpListener::bind(listen).map_err(|why| ServeError::Listen { listen, why })?;
    }
    Ok(())
}

/// The observation domain for a logger of this name. Collectors distinguish the loggers of a machine by it (RFC 7011 3.1),
/// and each name is used once. FNV-1a; never 0, which stands for no domain.
fn domain(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)).max(1)
}

/// Keeps this thread, and the threads that it starts, off the CPUs that poll. A failure costs speed only.
fn leave_cpus(polling: &[u32]) {
    let Ok(mut cpus) = rustix::thread::sched_getaffinity(None) else { return };
    for &cpu in polling {
        cpus.unset(cpu as usize);
    }
    if cpus.count() > 0 {
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
}

#[cfg(test)]
mod tests {
    use super::domain;

    #[test]
    fn loggers_of_other_names_have_other_domains() {
        let names = ["flowlog", "flowlog-4242", "flowlog-4243", "edge", ""];
        let domains: std::collections::BTreeSet<u32> = names.into_iter().map(domain).collect();
        assert_eq!((domains.len(), domains.contains(&0)), (names.len(), false));
        assert_eq!(domain("a"), 0xe40c_292c, "FNV-1a of one letter, as its authors publish it");
    }
}
