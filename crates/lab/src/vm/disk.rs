//! Disks that virtual machines boot.

use std::{fs::File, io::Read};

/// The first bytes of a qcow2 image.
const QCOW2: [u8; 4] = *b"QFI\xfb";

/// The format of a disk, as QEMU and libvirt name it. Said to both: libvirt takes a disk without one for a raw one.
pub(super) fn format(path: &str) -> &'static str {
    let mut first = [0; QCOW2.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    if read.is_ok() && first == QCOW2 {
        "qcow2"
    } else {
        "raw"
    }
}
