//! The ports of a logger as collectors see them: as interfaces with numbers and names.

use std::collections::BTreeSet;

use dpdk::PortSpec;
use flow::ipfix;
use rustix::net::{netdevice::name_to_index, socket, AddressFamily, SocketType};

/// The ports as interfaces. One of the kernel keeps its number and name; the others take the free numbers from 1 on.
/// `egress` gives the port at which frames leave that came in at a port.
pub fn interfaces(names: &[String], specs: &[PortSpec], egress: impl Fn(usize) -> Option<usize>) -> Vec<ipfix::Port> {
    let kernel: Vec<_> = specs.iter().map(kernel_interface).collect();
    let mut taken: BTreeSet<u32> = kernel.iter().flatten().map(|(index, _)| *index).collect();
    let indexes: Vec<u32> = kernel
        .iter()
        .map(|found| match found {
            Some((index, _)) => *index,
            None => {
                let free = (1..).find(|index| !taken.contains(index)).unwrap_or(u32::MAX);
                taken.insert(free);
                free
            }
        })
        .collect();
    let of = |port: usize| indexes.get(port).copied().unwrap_or(0);
    let ports = names.iter().zip(kernel).enumerate();
    ports
        .map(|(port, (text, kernel))| ipfix::Port {
            index: of(port),
            egress: egress(port).map_or(0, of),
            name: kernel.map_or_else(|| text.clone(), |(_, name)| name),
            description: text.clone(),
        })
        .collect()
}

/// Number and name of the kernel's interface behind a port.
fn kernel_interface(spec: &PortSpec) -> Option<(u32, String)> {
    let PortSpec::Eth { iface, .. } = spec else { return None };
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let index = name_to_index(any, iface).ok().filter(|index| *index > 0)?;
    Some((index, iface.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_numbers_its_own_and_the_others_count_from_one() {
        let names = ["null", "eth:lo", "null", "eth:nosuch0"].map(String::from);
        let specs: Vec<PortSpec> = names.iter().map(|name| name.parse().unwrap()).collect();
        let ports = interfaces(&names, &specs, |port| (port < 2).then_some(port ^ 1));
        // The loopback interface is number 1 in every network namespace.
        let found: Vec<_> =
            ports.iter().map(|p| (p.index, p.egress, p.name.as_str(), p.description.as_str())).collect();
        assert_eq!(
            found,
            [
                (2, 1, "null", "null"),
                (1, 2, "lo", "eth:lo"),
                (3, 0, "null", "null"),
                (4, 0, "eth:nosuch0", "eth:nosuch0")
            ]
        );
    }
}
