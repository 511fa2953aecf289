//! A client of the read protocol that waits for its answers.
//!
//! ```no_run
//! use flow::{client::{Client, ClientSpec}, protocol::{By, Filter}};
//!
//! let mut client = Client::connect(&ClientSpec::new("127.0.0.1:9395"))?;
//! println!("{} flows", client.totals()?.table.flows);
//! for row in client.top(By::Bytes, 10, &Filter::default())?.flows {
//!     println!("{:?} {}", row.record.key, row.bit_rate);
//! }
//! # Ok::<(), flow::client::ClientError>(())
//! ```

mod again;
mod connection;
mod error;
mod flows;
mod subscription;

pub use again::BackOff;
pub use connection::{Client, ClientSpec};
pub use error::ClientError;
pub use flows::Flows;
pub use net::TlsTrust;
pub use subscription::{Subscription, Update};
