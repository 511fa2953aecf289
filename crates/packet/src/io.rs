//! The traits of queues and pools.

use crate::{Buffer, Burst};

/// Where frames come from: a port's receive queue.
pub trait Rx {
    /// The kind of buffer received.
    type Buf: Buffer;
    /// Appends received frames to the burst, up to its spare room; returns how many. Never waits.
    fn rx(&mut self, burst: &mut Burst<Self::Buf>) -> usize;
}

/// Where frames go: a port's transmit queue.
pub trait Tx {
    /// The kind of buffer sent.
    type Buf: Buffer;
    /// Sends from the front of the burst; returns how many were accepted. These leave the burst, the refused stay
    /// owned and in front. Never waits.
    fn tx(&mut self, burst: &mut Burst<Self::Buf>) -> usize;
}

/// Where new buffers come from: a memory pool.
pub trait Alloc {
    /// The kind of buffer made.
    type Buf: Buffer;
    /// Appends up to `n` buffers of `len` bytes, contents unspecified; returns how many. All or none of `n`,
    /// and none when the burst has less room or the pool is empty.
    fn alloc(&mut self, burst: &mut Burst<Self::Buf>, n: usize, len: usize) -> usize;
}

impl<T: Rx + ?Sized> Rx for &mut T {
    type Buf = T::Buf;
    #[inline]
    fn rx(&mut self, burst: &mut Burst<Self::Buf>) -> usize {
        (**self).rx(burst)
    }
}

impl<T: Tx + ?Sized> Tx for &mut T {
    type Buf = T::Buf;
    #[inline]
    fn tx(&mut self, burst: &mut Burst<Self::Buf>) -> usize {
        (**self).tx(burst)
    }
}

impl<T: Alloc + ?Sized> Alloc for &mut T {
    type Buf = T::Buf;
    #[inline]
    fn alloc(&mut self, burst: &mut Burst<Self::Buf>, n: usize, len: usize) -> usize {
        (**self).alloc(burst, n, len)
    }
}
