//! Pictures: throughput by frame size, distribution of the delay by percentile, loss by load, sweeps, and a trial over time.

mod canvas;
mod error;
mod frame_loss;
mod latency;
mod palette;
mod picture;
mod sweep;
mod throughput;
mod timeline;

pub use error::SvgError;
pub use latency::of_applications;
pub use picture::render;
pub use sweep::sweep;
pub use timeline::timeline;
