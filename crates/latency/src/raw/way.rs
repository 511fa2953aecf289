//! The way that frames take: one end sends, the other receives.

use packet::{Alloc, Buffer, Burst, Rx, Tx};

/// What time stamps say of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamped {
    /// They are not used: the clock of the program counts.
    Unused,
    /// Nanoseconds from the stamp of sending to the stamp of receiving.
    Ns(u64),
    /// One of them was not made.
    Missing,
}

/// Two ends of a way. All of it is polled; nothing waits.
pub trait Way {
    /// Makes a frame ready to be handed over; false if there is no room for it.
    fn load(&mut self, frame: &[u8]) -> bool;
    /// Hands over what was loaded; false if it was not taken, and then it is given up.
    fn fire(&mut self) -> bool;
    /// Looks once for frames at the other end; returns how many are held now.
    fn poll(&mut self) -> usize;
    /// The nth of the held frames.
    fn frame(&self, n: usize) -> &[u8];
    /// Sends the held frames on as they are; returns how many were taken. None is held then.
    fn pass(&mut self) -> usize;
    /// Gives the held frames back.
    fn release(&mut self);
    /// What the kernel's or the NIC's time stamps say of the frame that went out last and came in: how long it was between them.
    fn stamped(&mut self) -> Stamped {
        Stamped::Unused
    }
    /// What drivers want done between frames.
    fn rest(&mut self) {}
}

/// Queues and a pool, as the packet path has them.
pub struct Queues<R: Rx, T: Tx<Buf = R::Buf>, A: Alloc<Buf = R::Buf>, F: FnMut(&mut T)> {
    rx: R,
    tx: T,
    pool: A,
    rest: F,
    loaded: Burst<R::Buf>,
    held: Burst<R::Buf>,
}

impl<R: Rx, T: Tx<Buf = R::Buf>, A: Alloc<Buf = R::Buf>, F: FnMut(&mut T)> Queues<R, T, A, F> {
    /// A way from `tx` to `rx`, with frames of `pool`. `rest` is what the driver that sends wants done between frames.
    pub fn new(rx: R, tx: T, pool: A, rest: F) -> Self {
        Self { rx, tx, pool, rest, loaded: Burst::new(), held: Burst::new() }
    }
}

impl<R: Rx, T: Tx<Buf = R::Buf>, A: Alloc<Buf = R::Buf>, F: FnMut(&mut T)> Way for Queues<R, T, A, F> {
    #[inline]
    fn load(&mut self, frame: &[u8]) -> bool {
        if self.loaded.is_empty() && self.pool.alloc(&mut self.loaded, 1, frame.len()) == 0 {
            return false;
        }
        let Some(buffer) = self.loaded.first_mut() else { return false };
        let fits = buffer.set_len(frame.len());
        if fits {
            buffer.data_mut().copy_from_slice(frame);
        }
        fits
    }

    #[inline]
    fn fire(&mut self) -> bool {
        let taken = self.tx.tx(&mut self.loaded) == 1;
        if !taken {
            Buffer::discard(&mut self.loaded);
        }
        taken
    }

    #[inline]
    fn poll(&mut self) -> usize {
        self.rx.rx(&mut self.held);
        self.held.len()
    }

    #[inline]
    fn frame(&self, n: usize) -> &[u8] {
        self.held.get(n).map_or(&[], Buffer::data)
    }

    #[inline]
    fn pass(&mut self) -> usize {
        let taken = self.tx.tx(&mut self.held);
        Buffer::discard(&mut self.held);
        taken
    }

    #[inline]
    fn release(&mut self) {
        Buffer::discard(&mut self.held);
    }

    fn rest(&mut self) {
        (self.rest)(&mut self.tx);
    }
}

#[cfg(test)]
mod tests {
    use packet::heap::{HeapPool, HeapWire};

    use super::*;

    #[test]
    fn frames_are_loaded_handed_over_held_and_given_back() {
        let pool = HeapPool::new(4, 2048);
        let (near, far) = HeapWire::pair(2);
        let mut rested = 0;
        let mut way = Queues::new(far, near, pool.clone(), |_| rested += 1);
        assert_eq!((way.poll(), way.frame(0)), (0, &[][..]));
        assert!(!way.fire(), "nothing is loaded");
        for n in 0..3u8 {
            assert!(way.load(&[n; 60]) && way.load(&[n; 64]), "the later one counts");
            assert_eq!(way.fire(), n < 2, "the cable holds two");
        }
        assert_eq!(way.poll(), 2);
        assert_eq!(way.frame(1), [1; 64]);
        way.release();
        assert!(!way.load(&[0; 4000]), "too long for the pool");
        assert!(way.load(&[7; 60]) && way.fire());
        assert_eq!(way.poll(), 1);
        assert_eq!(way.pass(), 1);
        assert_eq!((way.poll(), way.frame(0)), (1, &[7; 60][..]));
        way.rest();
        drop(way);
        assert_eq!((pool.in_use(), rested), (0, 1));
    }
}
