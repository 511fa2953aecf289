use std::fmt;

use packet::{Alloc, Burst, Clock};

use crate::{
    bridge::Bridge,
    l3::L3,
    mpls::Mpls,
    node::{NodeStats, NodeTimer},
    vxlan::Vxlan,
    Dispatch, Function, Null, Outputs, L2,
};
/// The functions to choose from: a line each.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($function:ty),)*) => {
        /// Any of the functions, chosen once: one branch a burst, and the code behind it is still the concrete one's.
        // There is one an lcore, and a box would be one more step to it.
        #[allow(clippy::large_enum_variant)]
        pub enum AnyFunction<A: Alloc> {
            $($(#[$doc])* $name($function),)*
        }

        impl<A: Alloc> fmt::Debug for AnyFunction<A> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name(_) => stringify!($name),)* })
            }
        }

        impl<A: Alloc> Function<A::Buf> for AnyFunction<A> {
            #[inline]
            fn process<C: Clock>(
                &mut self,
                ingress: usize,
                burst: &mut Burst<A::Buf>,
                out: &mut Outputs<A::Buf>,
                timer: &mut NodeTimer<'_, C>,
            ) -> Dispatch {
                match self { $(Self::$name(f) => f.process(ingress, burst, out, timer),)* }
            }

            #[inline]
            fn due(&mut self) -> bool {
                match self { $(Self::$name(f) => Function::<A::Buf>::due(f),)* }
            }

            #[inline]
            fn poll<C: Clock>(
                &mut self,
                burst: &mut Burst<A::Buf>,
                out: &mut Outputs<A::Buf>,
                timer: &mut NodeTimer<'_, C>,
            ) -> Dispatch {
                match self { $(Self::$name(f) => f.poll(burst, out, timer),)* }
            }

            fn release(&mut self) {
                match self { $(Self::$name(f) => Function::<A::Buf>::release(f),)* }
            }

            #[inline]
            fn held(&self) -> usize {
                match self { $(Self::$name(f) => Function::<A::Buf>::held(f),)* }
            }

            fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
                match self { $(Self::$name(f) => Function::<A::Buf>::nodes(f, visit),)* }
            }

            fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                match self { $(Self::$name(f) => Function::<A::Buf>::counters(f, visit),)* }
            }
        }
    };
}

functions! {
    /// Port to port.
    Null(Null),
    /// Cross-connect.
    L2(L2),
    /// A learning bridge.
    Bridge(Bridge<A>),
    /// Routing.
    L3(L3<A>),
    /// Label switching, and routing.
    Mpls(Mpls<L3<A>>),
    /// A tunnel end point, and routing.
    Vxlan(Vxlan<A, L3<A>>),
}
