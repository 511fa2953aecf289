//! Paths of recorded machines.

use tempfile::TempDir;

use super::{
    super::{
        express::PortType,
        model::{BoundBy, Crossing},
        nic::NicKind,
        report::{PcieReport, SlotKind},
    },
    *,
};
use crate::{Fact, Recording};

const X520: &str = include_str!("../fixtures/x520.txt");
const SWITCH: &str = include_str!("../fixtures/switch.txt");
const VIRTIO: &str = include_str!("../fixtures/virtio.txt");
const NOT_ROOT: &str = include_str!("../fixtures/not-root.txt");
const BROKEN: &str = include_str!("../fixtures/broken.txt");

fn machine(text: &str) -> (TempDir, Roots) {
    let dir = tempfile::tempdir().unwrap();
    Recording::parse(text).unwrap().unpack(dir.path()).unwrap();
    let roots = Roots::at(dir.path());
    (dir, roots)
}

fn path(text: &str, address: &str) -> PciePath {
    let (_dir, roots) = machine(text);
    PciePath::read(&roots, address).unwrap()
}

fn link(gts: f64, lanes: u32) -> Link {
    Link::new(gts, lanes).unwrap()
}

fn why<T: std::fmt::Debug>(fact: &Fact<T>) -> &str {
    match fact {
        Fact::Unreadable(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_x520_in_a_slot_of_four_lanes() {
    let path = path(X520, "0000:05:00.0");
    let addresses: Vec<_> = path.hops().iter().map(|hop| hop.address.as_str()).collect();
    assert_eq!(addresses, ["0000:05:00.0", "0000:00:1c.4"]);
    let device = path.device().unwrap();
    assert_eq!((device.id.as_known().unwrap().as_str(), device.class.clone()), ("8086:10fb", Fact::Known(0x02_0000)));
    assert_eq!(device.current_link, Fact::Known(link(5.0, 4)));
    assert_eq!(device.max_link, Fact::Known(link(5.0, 8)));
    assert_eq!((device.errors.correctable.clone(), device.errors.fatal.clone()), (Fact::Known(12), Fact::Known(0)));
    assert_eq!((device.numa_node, path.slot().unwrap().errors.fatal.clone()), (None, Fact::Absent));
    // As the kernel says: "limited by 5.0 GT/s PCIe x4 link at 0000:00:1c.4".
    assert_eq!(path.narrowest().unwrap().address, "0000:00:1c.4");
    let fit = path.fit();
    assert_eq!((fit.below_device, fit.below_slot, fit.below_both), (Some(true), Some(true), Some(false)));
    assert_eq!(fit.possible, Some(link(5.0, 4)));
    assert_eq!(path.attached(), Attached { to: Attachment::RootPort, inferred: false });
    assert_eq!(path.root_place(), Some(RootPlace::Chipset));
    assert_eq!((path.mps(), path.mrrs(), path.mps_supported()), (Some(256), Some(512), Some(256)));
}

#[test]
fn the_report_of_an_x520_says_what_was_measured_and_what_other_slots_give() {
    let report = PcieReport::new(path(X520, "0000:05:00.0"), 64, None);
    assert_eq!((report.nic, report.nic_is_known), (NicKind::IntelVector, true));
    let now = report.now().unwrap();
    // 13.4 Mpps were measured.
    assert!((now.both.fps / 1e6 - 13.37).abs() < 0.01, "{now:?}");
    assert!(now.receive.fps < now.transmit.fps && now.both.bound_by == BoundBy::Up);
    let present = report.present.as_ref().unwrap();
    assert_eq!((present.slot, present.kind), (link(5.0, 4), SlotKind::Present));
    let supported: Vec<_> = present.by_payload.iter().map(|payload| (payload.mps, payload.supported)).collect();
    assert_eq!(supported, [(128, Some(true)), (256, Some(true)), (512, Some(false))], "the root port does not");
    // In every slot of eight lanes it has its eight lanes at 5 GT/s, whatever the slot's speed.
    let slots: Vec<_> = report.elsewhere.iter().map(|slot| (slot.slot, slot.link)).collect();
    assert_eq!(slots[0], (link(5.0, 8), link(5.0, 8)));
    assert_eq!(report.elsewhere[0].kind, SlotKind::DeviceMaximum);
    assert_eq!(slots[1], (link(8.0, 4), link(5.0, 4)));
    assert_eq!(slots[6], (link(16.0, 16), link(5.0, 8)));
    let twice = &report.elsewhere[0].by_payload[1];
    assert!((twice.both.fps / now.both.fps - 1.99).abs() < 0.01 && !twice.in_use && twice.supported == Some(true));
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<PcieReport>(&json).unwrap(), report);
    assert!(json.contains(r#""current_link":{"known":{"gts":5.0,"lanes":4}}"#), "{json}");
}

#[test]
fn a_card_behind_a_switch_has_the_link_above_the_switch() {
    let path = path(SWITCH, "0000:3a:00.0");
    let kinds: Vec<_> = path.hops().iter().map(|hop| hop.express.as_known().unwrap().port_type).collect();
    let wanted = [PortType::Endpoint, PortType::SwitchDownstream, PortType::SwitchUpstream, PortType::RootPort];
    assert_eq!(kinds, wanted);
    assert_eq!(path.attached(), Attached { to: Attachment::Switches(1), inferred: false });
    assert_eq!(path.root_place(), Some(RootPlace::Processor));
    assert_eq!(path.narrowest().unwrap().address, "0000:36:00.0");
    let fit = path.fit();
    assert_eq!((fit.below_device, fit.below_slot, fit.below_both), (Some(true), Some(false), Some(false)));
    assert_eq!((path.mps(), path.mrrs(), path.mps_supported()), (Some(128), Some(1024), Some(256)), "least of all");
    let device = path.device().unwrap();
    let errors = &device.errors;
    assert_eq!(
        (errors.nonfatal.clone(), errors.fatal.clone(), device.numa_node),
        (Fact::Known(1), Fact::Known(2), Some(0))
    );
    let report = PcieReport::new(path, 1514, None);
    assert_eq!((report.nic, report.present.as_ref().unwrap().link), (NicKind::Mlx5, link(8.0, 4)));
    let slots: Vec<_> = report.elsewhere.iter().map(|slot| slot.link).collect();
    assert_eq!(slots[6], link(8.0, 16), "not more than the device can do");
}

#[test]
fn a_virtual_function_has_the_link_of_its_physical_function() {
    let path = path(SWITCH, "0000:3a:00.2");
    let device = path.device().unwrap();
    assert_eq!(device.physical_function.as_deref(), Some("0000:3a:00.0"));
    assert_eq!((device.current_link.clone(), path.mrrs()), (Fact::Known(link(8.0, 8)), Some(1024)));
    assert_eq!(device.id, Fact::Known("15b3:1018".to_owned()));
}

#[test]
fn a_virtio_device_has_neither_a_slot_nor_a_ceiling() {
    let path = path(VIRTIO, "0000:00:03.0");
    let device = path.device().unwrap();
    assert_eq!((path.hops().len(), &device.express, &device.current_link), (1, &Fact::Absent, &Fact::Absent));
    assert_eq!((path.attached().to, path.narrowest(), path.root_place()), (Attachment::RootComplex, None, None));
    let nothing = Fit { below_device: None, below_slot: None, below_both: None, possible: None };
    assert_eq!((path.fit(), path.mps(), path.mrrs()), (nothing, None, None));
    let report = PcieReport::new(path, 64, None);
    assert!(report.present.is_none() && report.now().is_none() && !report.nic_is_known);
    // What such slots carry can still be said.
    assert_eq!(report.elsewhere.len(), 6);
    assert!(report.elsewhere[0].by_payload.iter().all(|payload| payload.supported.is_none()));
}

#[test]
fn without_root_the_sizes_are_not_known_and_the_rest_is() {
    let path = path(NOT_ROOT, "0000:01:00.0");
    let device = path.device().unwrap();
    assert!(why(&device.express).starts_with("needs root"));
    assert_eq!((path.mps(), path.mrrs(), path.mps_supported()), (None, None, None));
    assert_eq!(path.attached(), Attached { to: Attachment::RootPort, inferred: true });
    assert_eq!(path.root_place(), Some(RootPlace::Processor));
    assert_eq!(path.narrowest().unwrap().address, "0000:01:00.0", "it cannot do more");
    let report = PcieReport::new(path, 64, None);
    assert!(report.now().is_none(), "not a guess");
    let ceilings: Vec<f64> =
        report.present.unwrap().by_payload.iter().map(|payload| (payload.both.fps / 1e4).round() / 1e2).collect();
    assert_eq!((report.nic, ceilings), (NicKind::IntelScalar, vec![2.46, 2.51, 2.53]));
}

#[test]
fn broken_files_are_said_to_be_broken() {
    let path = path(BROKEN, "0000:01:00.0");
    let device = path.device().unwrap();
    assert!(why(&device.express).contains("loop"));
    assert_eq!(why(&device.current_link), r#"the kernel says "9.9 parsecs" and "-1" lanes"#);
    assert!(why(&device.class).contains("is not a class"));
    assert!(why(&device.errors.correctable).contains("TOTAL_ERR_COR"));
    assert!(why(&device.errors.nonfatal).contains("TOTAL_ERR_NONFATAL"));
    assert!(why(&device.errors.fatal).contains("TOTAL_ERR_FATAL"));
    assert_eq!((device.numa_node, path.mps()), (None, None));
    assert_eq!(path.narrowest().unwrap().address, "0000:00:01.0", "of what is known");
    assert_eq!(path.attached(), Attached { to: Attachment::RootPort, inferred: false });
    assert!(PcieReport::new(path, 0, Some(NicKind::Unbatched)).nic_is_known);
}

#[test]
fn a_path_begins_below_its_host_bridge() {
    const VMD: &str = "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0";
    let text = format!("linerate machine 1\n/sys/bus/pci/devices/10000:e1:00.0 -> ../../../devices/{VMD}\n");
    let path = path(&text, "10000:e1:00.0");
    let addresses: Vec<_> = path.hops().iter().map(|hop| hop.address.as_str()).collect();
    assert_eq!(addresses, ["10000:e1:00.0", "10000:e0:01.0"], "not the bridge that pretends to be a device");
    assert_eq!(path.attached().to, Attachment::Unknown, "nothing is known of the hop above");
}

#[test]
fn what_is_not_an_address_is_not_read() {
    let (_dir, roots) = machine(X520);
    for address in
        ["", "05:00.0", "0000:05:00.1", "../../x", "0000:05:00:0", "0000:05:00.8", "0000.05.00.0", "0000:zz:00.0"]
    {
        assert_eq!(PciePath::read(&roots, address), None, "{address}");
    }
    // A link that leads elsewhere.
    let (_dir, roots) = machine("linerate machine 1\n/sys/bus/pci/devices/0000:05:00.0 -> /etc\n");
    assert_eq!(PciePath::read(&roots, "0000:05:00.0"), None);
}

#[test]
fn a_very_deep_tree_is_cut() {
    let chain: Vec<String> = (0..100).map(|n| format!("0000:{n:02x}:00.0")).collect();
    let text = format!(
        "linerate machine 1\n/sys/bus/pci/devices/0000:63:00.0 -> ../../../devices/pci0000:00/{}\n",
        chain.join("/")
    );
    let path = path(&text, "0000:63:00.0");
    assert_eq!((path.hops().len(), path.attached().to), (MOST_HOPS, Attachment::Unknown));
}

#[test]
fn what_was_read_is_a_recording_of_the_same_path_without_serial_numbers() {
    // A configuration space of 4096 bytes, with a serial number at its end.
    let hex = X520.lines().find(|line| line.contains("05:00.0/config hex")).unwrap();
    let long = format!("{hex}{}", "5e".repeat(4096 - 256));
    let (_dir, roots) = machine(&X520.replace(hex, &long));
    let roots = roots.recording();
    let first = PciePath::read(&roots, "0000:05:00.0").unwrap();
    let text = roots.recorded().to_text();
    assert!(!text.contains("5e5e"), "only 256 bytes are read");
    assert_eq!(path(&text, "0000:05:00.0"), first);
}

#[test]
fn a_crossing_has_a_name() {
    let names = [Crossing::Both, Crossing::Receive, Crossing::Transmit].map(|c| serde_json::to_string(&c).unwrap());
    assert_eq!(names, [r#""both""#, r#""receive""#, r#""transmit""#]);
}
