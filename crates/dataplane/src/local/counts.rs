//! The counters of the exceptional path.

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident = $name:literal;)*) => {
        #[derive(Debug, Default)]
        pub(super) struct Counts {
            $($(#[$doc])* pub(super) $field: u64,)*
        }

        impl Counts {
            /// Each with its name, in fixed order.
            pub(super) fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                $(visit($name, self.$field);)*
            }
        }
    };
}

counts! {
    arp_answered = "arp-requests-answered";
    arp_sent = "arp-requests-sent";
    /// Neighbours told to the control side.
    arp_learned = "arp-learned";
    /// Another station says that it has an address of ours (RFC 5227 2.4).
    arp_conflicts = "arp-conflicts";
    nd_answered = "nd-solicitations-answered";
    nd_sent = "nd-solicitations-sent";
    nd_learned = "nd-learned";
    /// Neighbours not told to the control side, because it did not keep up.
    events_lost = "neighbour-events-lost";
    /// Neighbours not asked for: too many at once, or no buffer.
    requests_withheld = "neighbour-requests-withheld";
    echo_replies = "echo-replies";
    errors_sent = "icmp-errors-sent";
    /// By the rate limit.
    errors_withheld = "icmp-errors-withheld";
}
