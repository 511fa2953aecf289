//! A port of the logger as collectors see it.

/// A port of the logger as collectors see it. [`Record::ingress`](crate::Record) counts the ports from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The number of its interface: of the kernel where there is one, otherwise from 1.
    pub index: u32,
    /// The interface at which its frames leave; 0: none.
    pub egress: u32,
    /// The kernel's name of the interface, or the port as it was given.
    pub name: String,
    /// The port as it was given.
    pub description: String,
}
