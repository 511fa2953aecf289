//! What guests are, where the user leaves it open.

use failure::Failure;
use guest::probe::{kvm, Kvm};
use lab::{options::GuestKind, topology::Topology};

use crate::{cli::lab::GuestsArg, out};

/// What the guests of a topology are.
///
/// # Errors
///
/// (machine) where KVM was asked for and does not run guests.
pub fn kind(asked: GuestsArg, topology: &Topology) -> Result<GuestKind, Failure> {
    let needs_machine = topology.guest.iter().any(|guest| guest.application.needs_a_machine());
    if topology.guest.is_empty() {
        return Ok(GuestKind::Process);
    }
    let here = || kvm(control::private_directory().ok().as_deref());
    match asked {
        GuestsArg::Process => Ok(GuestKind::Process),
        GuestsArg::Tcg => Ok(GuestKind::Tcg),
        GuestsArg::Kvm => match here() {
            Kvm::Runs => Ok(GuestKind::Kvm),
            Kvm::Not(why) => Err(Failure::machine(format!("--guests kvm: {why}: --guests vm emulates where KVM does not run"))),
        },
        GuestsArg::Auto | GuestsArg::Vm => match here() {
            Kvm::Runs => Ok(GuestKind::Kvm),
            Kvm::Not(_) if asked == GuestsArg::Auto && !needs_machine => Ok(GuestKind::Process),
            Kvm::Not(why) => {
                out::note(&format!("linerate: guests are emulated, so their rates mean nothing: {why}"));
                Ok(GuestKind::Tcg)
            }
        },
    }
}
