//! VXLAN tunnel end points (RFC 7348).

mod table;

pub use table::{Network, Overlay, OverlayConfig, Remote, StaticEntry};
