//! Threads beside the packet path: export, clients, metrics.

use std::sync::Arc;

use flow::{
    export::{ExportSpec, Exporter, Records},
    metrics::{MetricsServer, MetricsSpec},
    serve::{ServeSpec, Server, TlsSpec},
    Source,
};

use super::config::Settings;
use crate::{engine::flowlog::Logged, failure::Failure, out};

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
            joined: settings.joined(),
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
