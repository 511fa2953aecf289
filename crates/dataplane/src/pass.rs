use packet::{Buffer, Burst, Clock};

use crate::{
    node::{NodeStats, NodeTimer},
    Dispatch, DropReason, Function, Outputs,
};

/// How far ahead of the frame being handled the next ones are fetched into the cache.
pub(crate) const PREFETCH_AHEAD: usize = 16;

/// The egress port of each ingress port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortMap(Vec<usize>);

impl PortMap {
    /// Ports joined two by two: 0 with 1, 2 with 3; a last odd one with itself.
    pub fn pairs(ports: usize) -> Self {
        Self((0..ports).map(|i| if i ^ 1 < ports { i ^ 1 } else { i }).collect())
    }

    /// Frames of port `i` leave by port `egress[i]`.
    pub fn new(egress: Vec<usize>) -> Self {
        Self(egress)
    }

    /// Where frames of this port go; nowhere (`usize::MAX`) for a port not in the map.
    #[inline]
    fn egress(&self, ingress: usize) -> usize {
        self.0.get(ingress).copied().unwrap_or(usize::MAX)
    }
}

/// Port to port, frames neither read nor changed.
#[derive(Debug, Clone)]
pub struct Null {
    map: PortMap,
    node: NodeStats,
}

impl Null {
    /// A function that passes frames along this map.
    pub fn new(map: PortMap) -> Self {
        Self { map, node: NodeStats::new("null") }
    }
}

impl<B: Buffer> Function<B> for Null {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        timer.end_node(&mut self.node, burst.len());
        out.all(self.map.egress(ingress), burst)
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        visit(&self.node);
    }
}

/// Layer-2 cross-connect, with the MAC addresses swapped if asked, so that a reply finds its way through a switch.
#[derive(Debug, Clone)]
pub struct L2 {
    map: PortMap,
    mac_swap: bool,
    node: NodeStats,
}

impl L2 {
    /// A cross-connect along this map.
    pub fn new(map: PortMap, mac_swap: bool) -> Self {
        Self { map, mac_swap, node: NodeStats::new(if mac_swap { "l2-mac-swap" } else { "l2-cross-connect" }) }
    }

    /// Swaps destination and source; returns the mask of frames too short to hold both.
    #[inline]
    fn swap<B: Buffer>(burst: &mut Burst<B>) -> u64 {
        let mut runts = 0;
        burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
        for i in 0..burst.len() {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            match burst[i].data_mut().first_chunk_mut::<14>() {
                Some(header) => {
                    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
                    *header = [s0, s1, s2, s3, s4, s5, d0, d1, d2, d3, d4, d5, t0, t1];
                }
                None => runts |= 1 << i,
            }
        }
        runts
    }
}

impl<B: Buffer> Function<B> for L2 {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        timer: &mut NodeTimer<'_, C>,
    ) -> Dispatch {
        let n = burst.len();
        if self.mac_swap {
            let runts = Self::swap(burst);
            if runts != 0 {
                out.drops.drop_masked(burst, runts, DropReason::Runt);
            }
        }
        timer.end_node(&mut self.node, n);
        out.all(self.map.egress(ingress), burst)
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        visit(&self.node);
    }
}

#[cfg(test)]
mod tests {
    use packet::{
        heap::{HeapBuf, HeapPool},
        FakeClock,
    };

    use super::*;

    fn run<F: Function<HeapBuf>>(f: &mut F, ingress: usize, frames: &[&[u8]]) -> (Dispatch, Vec<Vec<u8>>, u64, usize) {
        let pool = HeapPool::new(64, 64);
        let mut out = Outputs::new(3);
        let clock = FakeClock::new(1_000);
        let mut burst: Burst<_> = frames.iter().filter_map(|f| pool.frame(f)).collect();
        let dispatch = f.process(ingress, &mut burst, &mut out, &mut NodeTimer::start(&clock, 0, true));
        let bytes = burst.iter().map(|f| f.data().to_vec()).collect();
        let drops = out.drops.counters().total();
        drop((burst, out));
        (dispatch, bytes, drops, pool.in_use())
    }

    #[test]
    fn null_passes_to_the_peer_unread() {
        let mut null = Null::new(PortMap::pairs(3));
        for (ingress, egress) in [(0, 1), (1, 0), (2, 2)] {
            let got = run(&mut null, ingress, &[&[1, 2, 3], &[]]);
            assert_eq!(got, (Dispatch::All(egress), vec![vec![1, 2, 3], vec![]], 0, 0));
        }
        assert_eq!(run(&mut null, 9, &[&[1]]), (Dispatch::Split, vec![], 1, 0));
        assert_eq!((null.node.calls, null.node.vectors), (4, 7));
    }

    #[test]
    fn macs_are_swapped_and_runts_dropped() {
        let mut l2 = L2::new(PortMap::new(vec![2]), true);
        let frame: Vec<u8> = (0..20).collect();
        let want: Vec<u8> = (6..12).chain(0..6).chain(12..20).collect();
        let got = run(&mut l2, 0, &[&frame, &frame[..13], &frame[..14], &[]]);
        assert_eq!(got, (Dispatch::All(2), vec![want.clone(), want[..14].to_vec()], 2, 0));
        let mut plain = L2::new(PortMap::pairs(2), false);
        assert_eq!(run(&mut plain, 0, &[&frame]), (Dispatch::All(1), vec![frame], 0, 0));
    }
}
