//! Network devices on the PCI bus: what drives each, and giving it to another driver.
//!
//! The order of writes below `/sys` is that of the kernel's `Documentation/ABI/testing/sysfs-bus-pci`: `driver_override`
//! names the only driver that may take the device, `unbind` takes it from its present one, `drivers_probe` looks for the
//! next.

use std::{fs, io};

use crate::Roots;

/// Drivers that leave a device to a program in user space.
pub const USER_SPACE: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// A network device on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PciDevice {
    /// Its address, `0000:37:00.0`.
    pub address: String,
    /// Vendor and device, as the bus has them: `8086:1572`.
    pub id: String,
    /// The driver that has it.
    pub driver: Option<String>,
    /// NUMA node; `None` where the machine has only one, or does not say.
    pub numa_node: Option<u32>,
    /// Whether it is behind an IOMMU, so that vfio-pci can guard its memory accesses.
    pub iommu: bool,
    /// The kernel's interfaces of it.
    pub interfaces: Vec<PciInterface>,
}

/// The kernel's interface of a PCI device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PciInterface {
    /// Its name.
    pub name: String,
    /// Whether it was set up (`ip link set up`): somebody may use it.
    pub up: bool,
    /// Whether it has a carrier; `None` while it is down.
    pub carrier: Option<bool>,
    /// Speed of the link, Mbit/s.
    pub speed_mbps: Option<u32>,
}

/// What binding a device comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindError {
    /// No such network device on this bus.
    NoDevice,
    /// The kernel's interface of it is up.
    InUse(String),
    /// The kernel has no such driver loaded.
    NoDriver,
    /// Another driver than the one asked for has it afterwards, or none.
    Refused(Option<String>),
    /// A file below `/sys` cannot be written.
    Io(String, io::ErrorKind),
}

const DEVICES: &str = "bus/pci/devices";

impl PciDevice {
    /// All network devices, by address.
    pub fn all(roots: &Roots) -> Vec<Self> {
        let mut all: Vec<Self> =
            roots.sys_names(DEVICES).iter().filter_map(|address| Self::read(roots, address)).collect();
        all.sort_by(|a, b| a.address.cmp(&b.address));
        all
    }

    /// The network device at this address; `None` if it is not there or is not a network device.
    pub fn read(roots: &Roots, address: &str) -> Option<Self> {
        let at = |file: &str| format!("{DEVICES}/{address}/{file}");
        let text = |file: &str| roots.sys::<String>(&at(file)).unwrap_or_default();
        // Class 02: network controllers.
        if !text("class").starts_with("0x02") {
            return None;
        }
        let bare = |file: &str| text(file).trim_start_matches("0x").to_owned();
        Some(Self {
            address: address.to_owned(),
            id: format!("{}:{}", bare("vendor"), bare("device")),
            driver: roots.sys_link(&at("driver")),
            numa_node: roots.sys::<i32>(&at("numa_node")).and_then(|node| u32::try_from(node).ok()),
            iommu: roots.sys_link(&at("iommu_group")).is_some()
                && roots.sys::<String>(&at("iommu_group/name")).as_deref() != Some("vfio-noiommu"),
            interfaces: interfaces(roots, address),
        })
    }

    /// Whether DPDK reaches it by physical addresses: no IOMMU translates for it.
    pub fn needs_physical_addresses(&self) -> bool {
        match self.driver.as_deref() {
            Some("uio_pci_generic" | "igb_uio") => true,
            Some("vfio-pci") => !self.iommu,
            _ => false,
        }
    }

    /// Whether a program in user space can drive it now.
    pub fn is_free(&self) -> bool {
        self.driver.as_deref().is_some_and(|driver| USER_SPACE.contains(&driver) || is_bifurcated(driver))
    }
}

/// Whether DPDK uses a device with this kernel driver beside the kernel (NVIDIA, Microsoft).
pub fn is_bifurcated(driver: &str) -> bool {
    matches!(driver, "mlx4_core" | "mlx5_core" | "mana" | "hv_netvsc")
}

fn interfaces(roots: &Roots, address: &str) -> Vec<PciInterface> {
    // A virtio device has its interface one level below.
    let mut found = Vec::new();
    let device = format!("{DEVICES}/{address}");
    let below = roots.sys_names(&device).into_iter().filter(|name| name.starts_with("virtio"));
    for place in [device.clone()].into_iter().chain(below.map(|name| format!("{device}/{name}"))) {
        for name in roots.sys_names(&format!("{place}/net")) {
            let at = |file: &str| format!("{place}/net/{name}/{file}");
            let flags = roots.sys::<String>(&at("flags")).unwrap_or_default();
            let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
            found.push(PciInterface {
                up: flags & 1 != 0,
                carrier: roots.sys::<u8>(&at("carrier")).map(|carrier| carrier == 1),
                speed_mbps: roots.sys::<i64>(&at("speed")).and_then(|speed| u32::try_from(speed).ok()),
                name,
            });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Gives a device to a driver. `force`: also while its interface is up. Returns the driver that had it.
///
/// # Errors
///
/// Why it is not the driver's; the device is left as it was, or with no driver where even that failed.
pub fn bind(roots: &Roots, address: &str, driver: &str, force: bool) -> Result<Option<String>, BindError> {
    let device = PciDevice::read(roots, address).ok_or(BindError::NoDevice)?;
    if device.driver.as_deref() == Some(driver) {
        return Ok(device.driver);
    }
    if !roots.sys_is_there(&format!("bus/pci/drivers/{driver}")) {
        return Err(BindError::NoDriver);
    }
    in_use(&device, force)?;
    // First: where this is refused, the device is still whose it was.
    let override_file = format!("{DEVICES}/{address}/driver_override");
    write(roots, &override_file, driver)?;
    if let Err(e) = leave(roots, &device) {
        let _ = write(roots, &override_file, "\n");
        return Err(e);
    }
    let probed = write(roots, "bus/pci/drivers_probe", address);
    let has = PciDevice::read(roots, address).and_then(|device| device.driver);
    match (probed, has.as_deref() == Some(driver)) {
        (_, true) => Ok(device.driver),
        (probed, false) => {
            // Back to whom it was: by the same way.
            let _ = write(roots, &override_file, "\n").and_then(|()| write(roots, "bus/pci/drivers_probe", address));
            probed.and(Err(BindError::Refused(has)))
        }
    }
}

/// Gives a device back to the driver that had it, whichever the kernel would find for it. Returns the driver that has it then.
///
/// # Errors
///
/// Why it could not be given back.
pub fn return_to(roots: &Roots, address: &str, driver: &str) -> Result<Option<String>, BindError> {
    bind(roots, address, driver, true)?;
    // Nobody else's any more: the next bus scan may choose again.
    write(roots, &format!("{DEVICES}/{address}/driver_override"), "\n")?;
    Ok(PciDevice::read(roots, address).and_then(|device| device.driver))
}

/// Gives a device back to the driver that the kernel finds for it. Returns that driver; `None` if there is none.
///
/// # Errors
///
/// Why it could not be given back.
pub fn give_back(roots: &Roots, address: &str) -> Result<Option<String>, BindError> {
    let device = PciDevice::read(roots, address).ok_or(BindError::NoDevice)?;
    if device.driver.as_deref().is_some_and(|driver| !USER_SPACE.contains(&driver)) {
        return Ok(device.driver);
    }
    leave(roots, &device)?;
    write(roots, &format!("{DEVICES}/{address}/driver_override"), "\n")?;
    write(roots, "bus/pci/drivers_probe", address)?;
    Ok(PciDevice::read(roots, address).and_then(|device| device.driver))
}

/// Refuses a device whose interface is up.
fn in_use(device: &PciDevice, force: bool) -> Result<(), BindError> {
    match device.interfaces.iter().find(|interface| interface.up && !force) {
        Some(interface) => Err(BindError::InUse(interface.name.clone())),
        None => Ok(()),
    }
}

/// Takes a device from its driver.
fn leave(roots: &Roots, device: &PciDevice) -> Result<(), BindError> {
    match &device.driver {
        Some(_) => write(roots, &format!("{DEVICES}/{}/driver/unbind", device.address), &device.address),
        None => Ok(()),
    }
}

fn write(roots: &Roots, path: &str, text: &str) -> Result<(), BindError> {
    let file = roots.sys_path(path);
    // Never made: a file that is not there is not an interface of the kernel.
    let opened = fs::OpenOptions::new().write(true).open(&file);
    opened
        .and_then(|mut open| io::Write::write_all(&mut open, text.as_bytes()))
        .map_err(|e| BindError::Io(file.display().to_string(), e.kind()))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, path::Path};

    use super::*;

    /// A device below a fixture's `sys`, with a driver of this name if there is one.
    fn device(root: &Path, address: &str, class: &str, driver: Option<&str>) {
        let dir = root.join("sys/bus/pci/devices").join(address);
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in [("class", class), ("vendor", "0x1af4"), ("device", "0x1000"), ("numa_node", "-1")] {
            fs::write(dir.join(file), format!("{text}\n")).unwrap();
        }
        fs::write(dir.join("driver_override"), "(null)\n").unwrap();
        for name in USER_SPACE.iter().copied().chain(driver) {
            let drivers = root.join("sys/bus/pci/drivers").join(name);
            fs::create_dir_all(&drivers).unwrap();
            fs::write(drivers.join("unbind"), "").unwrap();
        }
        if let Some(driver) = driver {
            symlink(format!("../../drivers/{driver}"), dir.join("driver")).unwrap();
        }
        fs::write(root.join("sys/bus/pci/drivers_probe"), "").unwrap();
    }

    fn interface(root: &Path, address: &str, below: &str, name: &str, flags: &str) {
        let dir = root.join("sys/bus/pci/devices").join(address).join(below).join("net").join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("flags"), flags).unwrap();
        fs::write(dir.join("speed"), "-1\n").unwrap();
    }

    #[test]
    fn network_devices_are_listed_with_what_has_them() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        device(at, "0000:00:04.0", "0x020000", Some("virtio-pci"));
        device(at, "0000:00:03.0", "0x020000", Some("uio_pci_generic"));
        device(at, "0000:00:01.0", "0x010100", Some("ata_piix"));
        interface(at, "0000:00:04.0", "virtio1", "eth0", "0x1003\n");
        let all = PciDevice::all(&Roots::at(at));
        let found: Vec<_> = all.iter().map(|d| (d.address.as_str(), d.driver.as_deref(), d.is_free())).collect();
        let wanted = [("0000:00:03.0", Some("uio_pci_generic"), true), ("0000:00:04.0", Some("virtio-pci"), false)];
        assert_eq!(found, wanted);
        assert_eq!((all[0].numa_node, all[0].id.as_str(), all[0].interfaces.len()), (None, "1af4:1000", 0));
        let wanted = PciInterface { name: "eth0".into(), up: true, carrier: None, speed_mbps: None };
        assert_eq!(all[1].interfaces, [wanted]);
        assert_eq!(PciDevice::all(&Roots::at(at.join("nothing"))), []);
    }

    #[test]
    fn only_what_no_iommu_translates_for_needs_physical_addresses() {
        let of = |driver: &str, iommu| {
            let driver = Some(driver.to_owned());
            PciDevice { driver, iommu, ..PciDevice::default() }.needs_physical_addresses()
        };
        assert!(of("uio_pci_generic", true) && of("igb_uio", false) && of("vfio-pci", false));
        assert!(!of("vfio-pci", true) && !of("mlx5_core", false) && !PciDevice::default().needs_physical_addresses());
        let root = tempfile::tempdir().unwrap();
        device(root.path(), "0000:00:03.0", "0x020000", Some("vfio-pci"));
        let read = || PciDevice::read(&Roots::at(root.path()), "0000:00:03.0").unwrap();
        assert!(!read().iommu, "no group");
        let group = root.path().join("sys/kernel/iommu_groups/7");
        fs::create_dir_all(&group).unwrap();
        symlink(&group, root.path().join("sys/bus/pci/devices/0000:00:03.0/iommu_group")).unwrap();
        assert!(read().iommu);
        fs::write(group.join("name"), "vfio-noiommu\n").unwrap();
        assert!(!read().iommu, "a group in name only");
    }

    #[test]
    fn binding_writes_what_the_kernel_wants_and_says_what_it_refuses() {
        let root = tempfile::tempdir().unwrap();
        let (at, roots) = (root.path(), Roots::at(root.path()));
        device(at, "0000:00:03.0", "0x020000", Some("e1000"));
        let bind = |driver: &str, force| bind(&roots, "0000:00:03.0", driver, force);
        assert_eq!(super::bind(&roots, "0000:00:09.0", "vfio-pci", false), Err(BindError::NoDevice));
        assert_eq!(bind("nothing", false), Err(BindError::NoDriver));
        assert_eq!(bind("e1000", false), Ok(Some("e1000".to_owned())), "it is there already");
        interface(at, "0000:00:03.0", ".", "eth7", "0x1003\n");
        assert_eq!(bind("vfio-pci", false), Err(BindError::InUse("eth7".to_owned())));
        let file = |path: &str| fs::read_to_string(at.join("sys/bus/pci").join(path)).unwrap();
        assert_eq!(file("drivers/e1000/unbind"), "", "nothing was taken");
        // The fixture's kernel gives it to nobody.
        assert_eq!(bind("vfio-pci", true), Err(BindError::Refused(Some("e1000".to_owned()))));
        assert_eq!(
            (file("drivers/e1000/unbind").as_str(), file("drivers_probe").as_str()),
            ("0000:00:03.0", "0000:00:03.0")
        );
        assert!(file("devices/0000:00:03.0/driver_override").starts_with('\n'), "and may be anybody's again");
        assert_eq!(give_back(&roots, "0000:00:03.0"), Ok(Some("e1000".to_owned())), "the kernel has it");
    }
}
