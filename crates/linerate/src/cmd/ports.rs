//! `linerate ports`: the NICs that are there, how to use each, and binding them.

use failure::{Exit, Failure};
use host::{
    pci::{self, is_bifurcated, BindError, PciDevice, PciInterface, USER_SPACE},
    Roots,
};
use lab::nics::told;
use serde::Serialize;

use crate::{cli::ports::PortsArgs, out};

/// Runs the command.
pub fn run(args: &PortsArgs) -> Result<Exit, Failure> {
    let roots = Roots::default();
    let all = PciDevice::all(&roots);
    let named: Vec<String> = args.nics.iter().map(|nic| address(&all, nic)).collect::<Result<_, _>>()?;
    for nic in &named {
        let told = |e: BindError| told(&e, nic, args.bind.as_deref().unwrap_or_default());
        match &args.bind {
            Some(driver) => {
                let had = pci::bind(&roots, nic, driver, args.force).map_err(told)?;
                out::print(&match had {
                    Some(had) if had == *driver => format!("{nic}: is bound to {driver} already"),
                    Some(had) => format!("{nic}: bound to {driver}; {had} had it"),
                    None => format!("{nic}: bound to {driver}"),
                });
            }
            None if args.give_back => out::print(&match pci::give_back(&roots, nic).map_err(told)? {
                Some(driver) => format!("{nic}: {driver} has it"),
                None => format!("{nic}: no driver of the kernel takes it"),
            }),
            None => {}
        }
    }
    if args.bind.is_none() && !args.give_back {
        let listed: Vec<PciDevice> =
            all.into_iter().filter(|device| named.is_empty() || named.contains(&device.address)).collect();
        out::print(&if args.json { json(&listed)? } else { table(&listed) });
    }
    Ok(Exit::Passed)
}

/// The address of a NIC that was named by its address or its interface.
pub(super) fn address(all: &[PciDevice], nic: &str) -> Result<String, Failure> {
    let full = if nic.matches(':').count() == 1 { format!("0000:{nic}") } else { nic.to_owned() };
    let found = all.iter().find(|device| device.address == full || device.interfaces.iter().any(|i| i.name == nic));
    found.map(|device| device.address.clone()).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|device| device.address.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::usage(format!("{nic:?}: no such NIC on the PCI bus: those of this machine are {known}"))
    })
}

/// How a NIC is used as a port.
fn usage(device: &PciDevice) -> String {
    let address = &device.address;
    match device.driver.as_deref() {
        Some(driver) if USER_SPACE.contains(&driver) || is_bifurcated(driver) => format!("--port {address}"),
        _ => {
            let driver = if device.iommu { "vfio-pci" } else { "uio_pci_generic" };
            let interface =
                device.interfaces.first().map(|i| format!("--port eth:{}, or ", i.name)).unwrap_or_default();
            format!("{interface}linerate ports --bind {driver} {address}")
        }
    }
}

fn table(devices: &[PciDevice]) -> String {
    if devices.is_empty() {
        return "no NIC on the PCI bus; ports without one: docs/ports.md".to_owned();
    }
    let mut lines = vec![format!("{:<13} {:<10} {:<16} {:>4}  {:<24} use", "NIC", "id", "driver", "NUMA", "interface")];
    for device in devices {
        let numa = device.numa_node.map_or_else(|| "-".to_owned(), |node| node.to_string());
        let driver = device.driver.as_deref().unwrap_or("none");
        let links: Vec<String> = device.interfaces.iter().map(link).collect();
        let links = if links.is_empty() { "-".to_owned() } else { links.join(", ") };
        let PciDevice { address, id, .. } = device;
        lines.push(format!("{address:<13} {id:<10} {driver:<16} {numa:>4}  {links:<24} {}", usage(device)));
    }
    lines.join("\n")
}

fn link(interface: &PciInterface) -> String {
    let state = match (interface.up, interface.carrier) {
        (false, _) => "down",
        (true, Some(false)) => "no carrier",
        (true, _) => "up",
    };
    let speed = interface.speed_mbps.map(|mbps| format!(" {mbps} Mbit/s")).unwrap_or_default();
    format!("{} {state}{speed}", interface.name)
}

/// One NIC, as `--json` has it.
#[derive(Serialize)]
struct Nic<'a> {
    address: &'a str,
    id: &'a str,
    driver: Option<&'a str>,
    numa_node: Option<u32>,
    iommu: bool,
    free: bool,
    interfaces: Vec<NicInterface<'a>>,
}

#[derive(Serialize)]
struct NicInterface<'a> {
    name: &'a str,
    up: bool,
    carrier: Option<bool>,
    speed_mbps: Option<u32>,
}

fn json(devices: &[PciDevice]) -> Result<String, Failure> {
    let nic = |device: &'_ PciDevice| -> serde_json::Value {
        let interfaces = device.interfaces.iter().map(|i| NicInterface {
            name: &i.name,
            up: i.up,
            carrier: i.carrier,
            speed_mbps: i.speed_mbps,
        });
        let nic = Nic {
            address: &device.address,
            id: &device.id,
            driver: device.driver.as_deref(),
            numa_node: device.numa_node,
            iommu: device.iommu,
            free: device.is_free(),
            interfaces: interfaces.collect(),
        };
        serde_json::to_value(nic).unwrap_or_default()
    };
    serde_json::to_string_pretty(&devices.iter().map(nic).collect::<Vec<_>>()).map_err(Failure::failed)
}
