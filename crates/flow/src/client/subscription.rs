//! Totals and the largest flows, sent by the logger at an interval.

use std::time::{Duration, Instant};

use net::within;

use super::{
    connection::{unexpected, Client},
    error::ClientError,
};
use crate::protocol::{Answer, Ask, By, Filter, Page, Totals, What};

/// An update of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// Everything counted so far.
    Totals(Totals),
    /// The largest flows; follows the totals once rates are known.
    Top(Page),
}

/// An iterator that waits for each update and ends after the first error.
#[derive(Debug)]
pub struct Subscription<'a> {
    client: &'a mut Client,
    id: u64,
    /// Longest time without an update.
    patience: Duration,
    ended: bool,
}

impl<'a> Subscription<'a> {
    pub(super) fn start(client: &'a mut Client, ask: Ask, every_s: u32) -> Result<Self, ClientError> {
        let id = client.send(ask)?;
        let patience = client.timeout.saturating_add(Duration::from_secs(every_s.into()));
        Ok(Self { client, id, patience, ended: false })
    }
}

impl Iterator for Subscription<'_> {
    type Item = Result<Update, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let patience = within(self.patience);
        let update = loop {
            let left = patience.saturating_duration_since(Instant::now());
            match self.client.receive(left) {
                Ok(None) if left.is_zero() => break Err(ClientError::Late(self.patience)),
                Ok(None) => {}
                Ok(Some(Answer { id, what: What::Error(why) })) if id == self.id || id == 0 => {
                    break Err(ClientError::Refused(why))
                }
                Ok(Some(answer)) if answer.id != self.id => {}
                Ok(Some(Answer { what: What::Totals(totals), .. })) => break Ok(Update::Totals(totals)),
                Ok(Some(Answer { what: What::Page(page), .. })) => break Ok(Update::Top(page)),
                Ok(Some(answer)) => break Err(unexpected(&answer.what)),
                Err(error) => break Err(error),
            }
        };
        self.ended = update.is_err();
        Some(update)
    }
}

impl Drop for Subscription<'_> {
    fn drop(&mut self) {
        // Later updates carry its `id` and are ignored.
        let _ = self.client.send(Ask::Unsubscribe);
    }
}

impl Client {
    /// Totals, and the largest flows if requested, at an interval in seconds. Dropping the subscription ends it.
    pub fn subscribe(
        &mut self,
        every_s: u32,
        top: Option<usize>,
        by: By,
        filter: &Filter,
    ) -> Result<Subscription<'_>, ClientError> {
        Subscription::start(self, Ask::Subscribe { every_s, top, by, filter: filter.clone() }, every_s)
    }
}
