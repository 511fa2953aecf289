//! A machine as an XML of libvirt, for those whose virtual machines libvirt runs. Elements are those of
//! <https://libvirt.org/formatdomain.html>; the settings are the two-VM document's (chapters 4 and 5).

use std::io;

use quick_xml::{events::BytesText, writer::Writer};

use super::{
    definition::{Definition, Joined, MachinePort, FIRST_SLOT},
    disk, PORT,
};

type Xml = Writer<Vec<u8>>;

/// The XML of a machine.
///
/// # Errors
///
/// Never in practice: it is written to memory.
pub fn xml(machine: &Definition) -> io::Result<String> {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    let kind = if machine.accelerator == "kvm" { "kvm" } else { "qemu" };
    out.create_element("domain").with_attribute(("type", kind)).write_inner_content(|out| domain(out, machine))?;
    Ok(String::from_utf8_lossy(&out.into_inner()).into_owned())
}

fn domain(out: &mut Xml, machine: &Definition) -> io::Result<()> {
    text(out, "name", &machine.name)?;
    if machine.disk.is_none() {
        text(out, "description", &how_to_make(machine))?;
    }
    out.create_element("memory")
        .with_attribute(("unit", "MiB"))
        .write_text_content(BytesText::new(&machine.mib.to_string()))?;
    out.create_element("memoryBacking").write_inner_content(|out| {
        if machine.hugepages {
            out.create_element("hugepages").write_inner_content(|out| {
                out.create_element("page").with_attributes([("size", "2"), ("unit", "M")]).write_empty().map(drop)
            })?;
        }
        out.create_element("nosharepages").write_empty()?;
        if machine.hugepages {
            out.create_element("locked").write_empty()?;
        }
        out.create_element("source").with_attribute(("type", "memfd")).write_empty()?;
        out.create_element("access").with_attribute(("mode", "shared")).write_empty().map(drop)
    })?;
    out.create_element("vcpu")
        .with_attribute(("placement", "static"))
        .write_text_content(BytesText::new(&machine.vcpus.to_string()))?;
    if !machine.pins.is_empty() {
        out.create_element("cputune").write_inner_content(|out| {
            for (vcpu, cpu) in &machine.pins {
                let pin = [("vcpu", vcpu.to_string()), ("cpuset", cpu.to_string())];
                empty(out, "vcpupin", &pin)?;
            }
            // The two-VM document leaves it out: QEMU's other threads then take time from a polling one.
            empty(out, "emulatorpin", &[("cpuset", machine.emulator_cpu.to_string())])
        })?;
    }
    out.create_element("os").write_inner_content(|out| {
        out.create_element("type")
            .with_attributes([("arch", "x86_64"), ("machine", "q35")])
            .write_text_content(BytesText::new("hvm"))?;
        if machine.disk.is_some() {
            return empty(out, "boot", &[("dev", "hd".to_owned())]);
        }
        text(out, "kernel", &machine.file("kernel"))?;
        text(out, "initrd", &machine.file("cpio"))?;
        text(out, "cmdline", &machine.kernel_line)
    })?;
    out.create_element("features").write_inner_content(|out| out.create_element("acpi").write_empty().map(drop))?;
    cpu(out, machine)?;
    out.create_element("clock")
        .with_attribute(("offset", "utc"))
        .write_inner_content(|out| empty(out, "timer", &[("name", "hpet".to_owned()), ("present", "no".to_owned())]))?;
    for (event, action) in [("on_poweroff", "destroy"), ("on_reboot", "restart"), ("on_crash", "destroy")] {
        text(out, event, action)?;
    }
    out.create_element("devices").write_inner_content(|out| devices(out, machine)).map(drop)
}

/// The kernel and the image are files of a lab: outside of it they are made.
fn how_to_make(machine: &Definition) -> String {
    let [json, kernel, image] = ["json", "kernel", "cpio"].map(|end| machine.file(end));
    let dir = std::path::Path::new(&json).parent().unwrap_or_else(|| std::path::Path::new("/"));
    format!(
        "{kernel} and {image} are made by: mkdir -p {0}; linerate lab show TOPOLOGY --guest-spec {1} >{json}; linerate lab guest image \
         --spec {json} --kernel {kernel} --initrd {image}. Give the TOPOLOGY and the flags that this was printed with. The sockets \
         of its ports are in {0} as well.",
        dir.display(),
        machine.name
    )
}

fn cpu(out: &mut Xml, machine: &Definition) -> io::Result<()> {
    let (cpus, mib) = (machine.vcpus.to_string(), machine.mib.to_string());
    let mode = if machine.accelerator == "kvm" { "host-passthrough" } else { "maximum" };
    out.create_element("cpu").with_attribute(("mode", mode)).write_inner_content(|out| {
        let topology = [("sockets", "1".to_owned()), ("cores", cpus), ("threads", "1".to_owned())];
        empty(out, "topology", &topology)?;
        out.create_element("numa").write_inner_content(|out| {
            let last = machine.vcpus.saturating_sub(1);
            let cell = [
                ("id", "0".to_owned()),
                ("cpus", if last == 0 { "0".to_owned() } else { format!("0-{last}") }),
                ("memory", mib.clone()),
                ("unit", "MiB".to_owned()),
                ("memAccess", "shared".to_owned()),
            ];
            empty(out, "cell", &cell)
        })?;
        Ok(())
    })?;
    Ok(())
}

fn devices(out: &mut Xml, machine: &Definition) -> io::Result<()> {
    if let Some(disk) = &machine.disk {
        out.create_element("disk").with_attributes([("type", "file"), ("device", "disk")]).write_inner_content(
            |out| {
                empty(out, "driver", &[("name", "qemu".to_owned()), ("type", disk::format(disk).to_owned())])?;
                empty(out, "source", &[("file", disk.clone())])?;
                empty(out, "target", &[("dev", "vda".to_owned()), ("bus", "virtio".to_owned())])?;
                // What the machine writes is gone with it.
                empty(out, "transient", &[])
            },
        )?;
    }
    for (n, port) in (0..).zip(&machine.ports) {
        interface(out, n, port)?;
    }
    out.create_element("channel").with_attribute(("type", "unix")).write_inner_content(|out| {
        empty(out, "source", &[("mode", "bind".to_owned()), ("path", machine.file("ctl"))])?;
        empty(out, "target", &[("type", "virtio".to_owned()), ("name", PORT.to_owned())])
    })?;
    out.create_element("serial")
        .with_attribute(("type", "pty"))
        .write_inner_content(|out| empty(out, "target", &[("port", "0".to_owned())]))?;
    // No balloon takes memory away while it is measured.
    empty(out, "memballoon", &[("model", "none".to_owned())])
}

fn interface(out: &mut Xml, n: u32, port: &MachinePort) -> io::Result<()> {
    let kind = match port.joined {
        Joined::VhostUser(_) => "vhostuser",
        Joined::Tap(_) => "ethernet",
    };
    out.create_element("interface").with_attribute(("type", kind)).write_inner_content(|out| {
        empty(out, "mac", &[("address", port.mac.clone())])?;
        match &port.joined {
            // The switch is the client (dpdkvhostuserclient): it may end and come back.
            Joined::VhostUser(socket) => empty(
                out,
                "source",
                &[("type", "unix".to_owned()), ("path", socket.clone()), ("mode", "server".to_owned())],
            )?,
            Joined::Tap(interface) => {
                empty(out, "target", &[("dev", interface.clone()), ("managed", "no".to_owned())])?
            }
        }
        empty(out, "model", &[("type", "virtio".to_owned())])?;
        let mut driver = vec![("name", "vhost".to_owned()), ("queues", port.queues.to_string())];
        driver.push(("rx_queue_size", port.ring.to_string()));
        driver.push(("tx_queue_size", port.tx_ring().to_string()));
        let element = driver.iter().fold(out.create_element("driver"), |e, (k, v)| e.with_attribute((*k, v.as_str())));
        element.write_inner_content(|out| {
            let off = |names: &[&'static str]| names.iter().map(|name| (*name, "off".to_owned())).collect::<Vec<_>>();
            empty(out, "host", &off(&["csum", "gso", "tso4", "tso6", "ecn", "ufo", "mrg_rxbuf"]))?;
            empty(out, "guest", &off(&["csum", "tso4", "tso6", "ecn", "ufo"]))
        })?;
        let slot = format!("{:#04x}", FIRST_SLOT + n);
        let address =
            [("type", "pci"), ("domain", "0x0000"), ("bus", "0x00"), ("slot", slot.as_str()), ("function", "0x0")];
        out.create_element("address").with_attributes(address).write_empty().map(drop)
    })?;
    Ok(())
}

fn text(out: &mut Xml, name: &str, text: &str) -> io::Result<()> {
    out.create_element(name).write_text_content(BytesText::new(text)).map(drop)
}

fn empty(out: &mut Xml, name: &str, attributes: &[(&'static str, String)]) -> io::Result<()> {
    let element = attributes.iter().fold(out.create_element(name), |e, (k, v)| e.with_attribute((*k, v.as_str())));
    element.write_empty().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::GuestKind, topology, Build, LabOptions};

    #[test]
    fn files_that_only_a_lab_has_come_with_the_commands_that_make_them() {
        let options = LabOptions { guests: GuestKind::Tcg, ..LabOptions::default() };
        let build =
            Build::new(topology::load("phy-vm-phy").unwrap(), options, &[0, 1], "linerate", "/run/lab").unwrap();
        let own = xml(&build.machines[0]).unwrap();
        for wanted in
            ["<kernel>/run/lab/vm1.kernel</kernel>", "lab guest image --spec /run/lab/vm1.json", "mkdir -p /run/lab;"]
        {
            assert!(own.contains(wanted), "{wanted}: {own}");
        }
        let disk = Definition { disk: Some("/x.qcow2".to_owned()), ..build.machines[0].clone() };
        assert!(!xml(&disk).unwrap().contains("description"));
    }

    #[test]
    fn a_disk_has_its_format() {
        let options = LabOptions { guests: GuestKind::Tcg, ..LabOptions::default() };
        let build =
            Build::new(topology::load("phy-vm-phy").unwrap(), options, &[0, 1], "linerate", "/run/lab").unwrap();
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes, format) in
            [("a", &b"QFI\xfb\0\0\0\x03"[..], "qcow2"), ("b", b"\xeb\x63", "raw"), ("c", b"", "raw")]
        {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let own = Definition { disk: Some(path.to_str().unwrap().to_owned()), ..build.machines[0].clone() };
            assert!(xml(&own).unwrap().contains(&format!("<driver name=\"qemu\" type=\"{format}\"/>")), "{name}");
            assert!(crate::vm::qemu::command(&own).to_string().contains(&format!(",format={format},")), "{name}");
        }
    }
}
