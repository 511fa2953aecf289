//! Threads beside the packet path: export, clients, metrics.

use std::sync::Arc;

use flow::{
    export::{ExportSpec, Exporter, Records},
    metrics::{MetricsServer, MetricsSpec},
    serve::{ServeSpec, Server, TlsSpec},
    Source,
};

use super::config::Settings;
use crate::out;
use failure::Failure;
use rig::device::Logged;

/// Clients, metrics. Export is [`Logged`]'s, to be ended before these.
pub struct Serving {
    flows: Option<Server>,
    metrics: Option<MetricsServer>,
}

impl Serving {
    /// Starts all threads, on CPUs that do not poll if there are others.
    pub fn start(
        settings: &Settings,
        name: &str,
        logged: &Arc<Logged>,
        ended: Vec<Box<dyn Records>>,
    ) -> Result<Self, Failure> {
        // Threads run where the one that starts them may.
        std::thread::scope(|s| {
            let start = || {
                leave(&settings.cpus);
                Self::start_here(settings, name, logged, ended)
            };
            s.spawn(start).join().unwrap_or_else(|_| Err(Failure::failed("a thread for clients panicked")))
        })
    }

    fn start_here(
        settings: &Settings,
        name: &str,
        logged: &Arc<Logged>,
        ended: Vec<Box<dyn Records>>,
    ) -> Result<Self, Failure> {
        let config = &settings.config;
        let spec = ExportSpec {
            sinks: settings.sinks.clone(),
            domain: config.domain.unwrap_or_else(|| domain(name)),
            biflow: settings.joined(),
            distinguish: settings.distinguish(),
            queue: (settings.flows * settings.cpus.len()).clamp(1 << 18, 1 << 22),
            ..ExportSpec::default()
        };
        let exporter = Exporter::start(&spec, ended, Arc::new(|line: &str| out::note(line)))
            .map_err(|e| Failure::machine(format!("a thread for export: {e}: allow more processes (ulimit -u)")))?;
        logged.export(exporter);
        let source = || Arc::clone(logged) as Arc<dyn Source>;
        let tls = (!config.tls_cert.as_os_str().is_empty())
            .then(|| TlsSpec { cert: config.tls_cert.clone(), key: config.tls_key.clone() });
        let flows = settings.listen.map(|listen| {
            let spec =
                ServeSpec { name: name.to_owned(), token: settings.token.clone(), tls, ..ServeSpec::new(listen) };
            Server::start(&spec, source())
        });
        let flows = flows.transpose()?;
        let metrics = settings
            .metrics
            .map(|listen| MetricsServer::start(&MetricsSpec { listen, token: settings.token.clone() }, source()));
        Ok(Self { flows, metrics: metrics.transpose()? })
    }

    /// Where it can be read, each followed by a semicolon.
    pub fn describe(&self) -> String {
        let flows = self.flows.as_ref().map(|s| format!("flows at {}; ", s.local_addr()));
        let metrics = self.metrics.as_ref().map(|s| format!("metrics at {}; ", s.local_addr()));
        flows.unwrap_or_default() + &metrics.unwrap_or_default()
    }
}

/// An observation domain for a logger of this name: collectors tell the loggers of a machine apart by it (RFC 7011 3.1), and
/// names are taken once. FNV-1a, and never zero, which stands for no domain.
fn domain(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)).max(1)
}

/// Keeps this thread, and those it starts, off the CPUs that poll. Not being able to costs speed only.
fn leave(polling: &[u32]) {
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
