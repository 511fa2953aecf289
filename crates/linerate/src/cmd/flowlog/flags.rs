//! The flags of `flowlog` over its configuration file.

use failure::Failure;
use runner::{
    config::read_toml,
    flowlog::{Config, RENAMED_KEYS},
};

use crate::cli::flowlog::FlowlogArgs;

/// The file, if one is given, with the flags over it.
///
/// # Errors
///
/// (usage) for a file that cannot be read.
pub fn config(args: &FlowlogArgs) -> Result<Config, Failure> {
    let mut config = match &args.config {
        Some(path) => read_toml(path, RENAMED_KEYS)?,
        None => Config::default(),
    };
    config.ports.extend_from_slice(&args.ports);
    config.ipfix.extend_from_slice(&args.ipfix);
    config.netflow9.extend_from_slice(&args.netflow9);
    config.json.extend_from_slice(&args.json);
    config.reflect |= args.reflect;
    config.receive_only |= args.receive_only;
    config.once |= args.once;
    config.details |= args.details;
    config.no_clocks |= args.no_clocks;
    config.quiet |= args.quiet;
    macro_rules! over {
        ($from:ident: $($field:ident),*) => {
            $(if let Some(value) = &$from.$field { config.$field = value.clone().into(); })*
        };
    }
    over!(args: duration, name, flows, idle, active, table_full, biflow, mpls, vxlan, vxlan_port, distinguish, listen);
    over!(args: gre, ipip, gtpu, sample);
    over!(args: token_file, tls_cert, tls_key, metrics);
    config.domain = args.domain.or(config.domain);
    config.mtu = args.mtu.or(config.mtu);
    let memory = &args.memory;
    if let Some(kind) = memory.memory {
        config.memory = kind.choice();
    }
    over!(memory: memory_mib, descriptors);
    args.queues.over(&mut config.cpus, &mut config.rx_queues, &mut config.queue_map, &mut config.tx);
    if let (true, Some(file)) = (config.cpus.is_empty(), &args.core_plan) {
        config.cpus = rig::host_plan::read_data_plane(file)?;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_default() {
        let command = <crate::cli::Cli as clap::CommandFactory>::command();
        let flowlog = command.find_subcommand("flowlog").unwrap();
        let defaults = toml::Table::try_from(Config::default()).unwrap();
        for (key, value) in defaults {
            let text = match value {
                toml::Value::String(text) if !text.is_empty() => text,
                toml::Value::Integer(n) => n.to_string(),
                _ => continue,
            };
            let help = flowlog.get_arguments().find(|a| a.get_id() == &key).unwrap().get_help().unwrap().to_string();
            assert!(help.ends_with(&format!("Default: {text}")), "{key}: {help}");
        }
        for name in ["flowlog", "flows"] {
            let text = command.find_subcommand(name).unwrap().get_after_help().unwrap().to_string();
            assert!(text.contains("Exit codes:") && text.lines().all(|line| line.len() < 80), "{text}");
        }
    }
}
