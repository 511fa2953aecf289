//! The details of the flows of one IP version, by slot.

use rtrb::{Consumer, Producer, RingBuffer};

use crate::{
    details::{Line, PacketDetails},
    link::BYTES,
    Details, Link,
};

/// The details of the flows, by slot, and where those of ended flows go.
pub(crate) struct DetailTable {
    lines: Box<[Line]>,
    /// The link layer of each direction: of biflows two in a row.
    // As plain bytes, which the allocator hands out zeroed: pages without flows are never touched.
    links: Box<[[u8; BYTES]]>,
    biflow: bool,
    ended: Producer<EndedDetails>,
}

/// The details of a flow since its last record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndedDetails {
    line: Line,
    links: [Link; 2],
}

impl EndedDetails {
    /// In figures; `ns` makes nanoseconds of ticks.
    pub(crate) fn details(&self, ns: impl Fn(u64) -> u64) -> Details {
        let mut details = self.line.details(ns);
        for (way, link) in [&mut details.forward, &mut details.back].into_iter().zip(self.links) {
            way.link = (way.max_ip_bytes > 0).then_some(link);
        }
        details
    }
}

impl DetailTable {
    /// For so many slots, with room for so many ended flows; and the reader of these.
    pub(crate) fn new(slots: usize, biflow: bool, ended: usize) -> (Self, Consumer<EndedDetails>) {
        // One more than records: the reader takes a record first, and its details afterwards.
        let (to, from) = RingBuffer::new(ended + 1);
        let lines = vec![Line::default(); slots].into_boxed_slice();
        let links = vec![[0; BYTES]; slots * (1 + usize::from(biflow))].into_boxed_slice();
        (Self { lines, links, biflow, ended: to }, from)
    }

    /// Its bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.links)
    }

    /// The details of the flow in this slot, but for its link layer.
    #[inline(always)]
    pub(crate) fn line(&self, place: u32) -> Option<&Line> {
        self.lines.get(place as usize)
    }

    /// Takes a packet of the flow in this slot, that came at tick `now`. See [`Line::take`].
    #[inline(always)]
    pub(crate) fn take(&mut self, place: u32, packet: &PacketDetails, back: bool, now: u64, overtaking: u64) {
        let Some(line) = self.lines.get_mut(place as usize) else { return };
        if line.take(packet, back, now, overtaking) {
            let at = self.link(place, back);
            if let Some(link) = self.links.get_mut(at) {
                *link = packet.link.0;
            }
        }
    }

    fn link(&self, place: u32, back: bool) -> usize {
        if self.biflow {
            2 * place as usize + usize::from(back)
        } else {
            place as usize
        }
    }

    /// Number of details of ended flows that still fit.
    pub(crate) fn slots(&self) -> usize {
        self.ended.slots()
    }

    /// Begins anew with the flow in this slot. Passes on what was recorded if its record is passed on, too: there must be room.
    /// `goes_on`: the flow does.
    pub(crate) fn cut(&mut self, place: u32, goes_on: bool, pass: bool) {
        let line = self.lines.get_mut(place as usize).map(|line| line.cut(goes_on)).unwrap_or_default();
        if pass {
            let link = |back| Link(self.links.get(self.link(place, back)).copied().unwrap_or([0; BYTES]));
            let links = [link(false), if self.biflow { link(true) } else { Link::default() }];
            let _ = self.ended.push(EndedDetails { line, links });
        }
    }
}
