//! How devices are told where frames are: by virtual or by physical addresses.

use host::Roots;

use crate::{spec::check_pci, DpdkError, Memory};

/// The addresses that devices get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Iova {
    /// The program's own addresses: no device, or an IOMMU that translates.
    Virtual,
    /// Physical ones, since nothing translates for this NIC. DPDK knows them only of hugepages.
    Physical {
        /// The first such NIC.
        address: String,
        /// Its driver.
        driver: String,
    },
}

impl Iova {
    /// What these NICs need.
    ///
    /// # Errors
    ///
    /// The first NIC that is not there or that the kernel has.
    pub(crate) fn of(pci: &[String], roots: &Roots) -> Result<Self, DpdkError> {
        let mut iova = Self::Virtual;
        for address in pci {
            let device = check_pci(address, roots)?;
            if iova == Self::Virtual && device.needs_physical_addresses() {
                let driver = device.driver.unwrap_or_default();
                iova = Self::Physical { address: device.address, driver };
            }
        }
        Ok(iova)
    }

    /// The argument of DPDK.
    pub(crate) fn argument(&self) -> &'static str {
        match self {
            Self::Virtual => "--iova-mode=va",
            Self::Physical { .. } => "--iova-mode=pa",
        }
    }

    /// The memory that does with these addresses.
    ///
    /// # Errors
    ///
    /// When memory was asked for that a NIC cannot reach.
    pub(crate) fn memory(&self, asked: Memory) -> Result<Memory, DpdkError> {
        match (self, asked) {
            (Self::Virtual, asked) => Ok(asked),
            (Self::Physical { .. }, Memory::Auto { mib } | Memory::Huge { mib }) => Ok(Memory::Huge { mib }),
            (Self::Physical { address, driver }, Memory::NoHuge { .. }) => {
                Err(DpdkError::PciNeedsHugepages { address: address.clone(), driver: driver.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn the_mode_follows_the_nics() {
        let root = tempfile::tempdir().unwrap();
        let roots = Roots::at(root.path());
        for (address, driver) in
            [("0000:00:03.0", "uio_pci_generic"), ("0000:00:04.0", "mlx5_core"), ("0000:00:05.0", "e1000")]
        {
            let dir = root.path().join("sys/bus/pci/devices").join(address);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("class"), "0x020000\n").unwrap();
            symlink(format!("../../drivers/{driver}"), dir.join("driver")).unwrap();
        }
        let of = |addresses: &[&str]| Iova::of(&addresses.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>(), &roots);
        let (none, shared) = (of(&[]).unwrap(), of(&["00:04.0"]).unwrap());
        assert_eq!((none.argument(), shared), ("--iova-mode=va", Iova::Virtual));
        let physical = of(&["0000:00:04.0", "00:03.0"]).unwrap();
        assert_eq!(physical.argument(), "--iova-mode=pa");
        assert_eq!(physical.memory(Memory::Auto { mib: 64 }).unwrap(), Memory::Huge { mib: 64 });
        assert!(matches!(
            physical.memory(Memory::NoHuge { mib: 64 }),
            Err(DpdkError::PciNeedsHugepages { address, .. }) if address == "0000:00:03.0"
        ));
        assert_eq!(Iova::Virtual.memory(Memory::Auto { mib: 64 }).unwrap(), Memory::Auto { mib: 64 });
        assert!(matches!(of(&["00:05.0"]), Err(DpdkError::PciNotBound { driver, .. }) if driver == "e1000"));
        assert!(matches!(of(&["00:09.0"]), Err(DpdkError::NoPciDevice { .. })));
    }
}
