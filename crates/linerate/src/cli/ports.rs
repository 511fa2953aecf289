//! Flags of `linerate ports`.

use clap::Args;

/// `linerate ports`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PortsArgs {
    /// Give these NICs to a driver for user space: vfio-pci, or uio_pci_generic where there is no IOMMU.
    #[arg(long, value_name = "DRIVER", conflicts_with = "give_back", requires = "nics")]
    pub bind: Option<String>,
    /// Give these NICs back to the kernel's own driver.
    #[arg(long, requires = "nics")]
    pub give_back: bool,
    /// Bind a NIC although its interface is up: a connection over it breaks.
    #[arg(long, requires = "bind")]
    pub force: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// PCI addresses, such as 0000:37:00.0 or 37:00.0, or the names of their interfaces.
    #[arg(value_name = "NIC")]
    pub nics: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  linerate ports
  sudo linerate ports --bind vfio-pci 0000:37:00.0 0000:37:00.1
  sudo linerate ports --give-back 0000:37:00.0 0000:37:00.1
Exit codes: 0 done; 2 a NIC is not there, or its interface is up; 4 the machine lacks a driver or a right. Page: docs/ports.md";
