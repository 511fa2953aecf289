//! Head-end replication: a frame without one known place to go, to all of its network (RFC 7348 4.2).

use packet::{Alloc, Buffer};

use super::{
    flow,
    switch::Exit,
    work::{Context, Work},
};
use crate::{DropReason, Outputs};

impl<A: Alloc> Work<A> {
    /// Sends the frames put aside to every access link of their network but the one they came from and, unless they are
    /// `TUNNELLED`, into the tunnel of every configured remote.
    ///
    /// The frame itself goes to the last of them, copies to the others. A copy for which there is no buffer, or no room in
    /// what its port sends at once, is not made and counted as missing. One that could not leave anyway (no route, too
    /// long) is counted as made and dropped, and the frame as dropped when none could.
    #[inline(never)]
    pub(super) fn flood<const TUNNELLED: bool>(&mut self, cx: Context<'_>, out: &mut Outputs<A::Buf>) {
        let mut floods = std::mem::take(&mut self.floods);
        self.counts.flooded += floods.len() as u64;
        for (i, frame) in floods.drain(..).enumerate() {
            let (domain, from) = self.flood_of[i];
            self.flood_one::<TUNNELLED>(cx, domain, from, frame, out);
        }
    }

    fn flood_one<const TUNNELLED: bool>(
        &mut self,
        cx: Context<'_>,
        domain: u16,
        from: u16,
        frame: A::Buf,
        out: &mut Outputs<A::Buf>,
    ) {
        let Some(network) = cx.overlay.domain(domain) else {
            return out.drops.drop(frame, DropReason::VxlanVni);
        };
        let (len, hash) = (frame.len(), flow::hash(frame.data()));
        let tunnels = if TUNNELLED { &[][..] } else { &network.flood };
        let (mut last, mut failed) = (None, None);
        for &endpoint in network.access.iter().chain(tunnels).filter(|endpoint| **endpoint != from) {
            let Some(exit) = cx.exit(domain, endpoint) else { continue };
            match self.fits(cx, endpoint, exit, len, hash) {
                Ok(port) => {
                    if let Some((endpoint, exit, port)) = last.replace((endpoint, exit, port)) {
                        self.copy(cx, endpoint, exit, port, &frame, out);
                    }
                }
                Err(reason) => {
                    if let Some(reason) = failed.replace(reason) {
                        unsent(reason, out);
                    }
                }
            }
        }
        match (last, failed) {
            (Some((endpoint, exit, _)), failed) => {
                if let Some(reason) = failed {
                    unsent(reason, out);
                }
                self.send(cx, endpoint, exit, frame, out);
            }
            (None, Some(reason)) => out.drops.drop(frame, reason),
            (None, None) => out.drops.drop(frame, DropReason::NoMember),
        }
    }

    fn copy(
        &mut self,
        cx: Context<'_>,
        endpoint: u16,
        exit: Exit<'_>,
        port: usize,
        frame: &A::Buf,
        out: &mut Outputs<A::Buf>,
    ) {
        let room = out.port(port).is_some_and(|burst| !burst.is_full());
        if room {
            self.alloc.alloc(&mut self.copy, 1, frame.len());
        }
        let Some(mut copy) = self.copy.pop() else {
            self.counts.copies_missing += 1;
            return;
        };
        copy.data_mut().copy_from_slice(frame.data());
        out.originated += 1;
        self.send(cx, endpoint, exit, copy, out);
    }
}

/// A copy that could not leave.
fn unsent<B: Buffer>(reason: DropReason, out: &mut Outputs<B>) {
    out.originated += 1;
    out.drops.count(reason);
}
