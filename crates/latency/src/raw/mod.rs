//! Raw frames: from before one is handed over to when it is received, or from when one is there to when it is handed on.

pub mod frame;
pub mod options;
pub mod packet_socket;
pub mod result;
pub mod run;
mod series;
pub mod sizes;
pub mod timing;
pub mod way;
