//! Every procedure against devices of known truth.

mod bounds;
mod device;
mod found;
mod labels;
