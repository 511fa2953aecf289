//! Virtual machines of a lab: the image they boot, and the first process in them.
//!
//! [`image::make`] packs this program, what the guest's programs need of this machine, and modules of its kernel into an
//! image in memory: nothing is downloaded. [`init::run`] is what the same program does as the first process of a guest.
#![forbid(unsafe_code)]

pub mod image;
pub mod init;
pub mod probe;
