//! All flows of a logger, page by page.

use super::{connection::Client, error::ClientError};
use crate::{
    protocol::{Filter, MAX_LIMIT},
    Record,
};

/// All flows, one after another. Ends after the last or the first error.
#[derive(Debug)]
pub struct Flows<'a> {
    client: &'a mut Client,
    filter: Filter,
    cursor: Option<String>,
    last: bool,
    page: std::vec::IntoIter<crate::protocol::Row>,
}

impl<'a> Flows<'a> {
    pub(super) fn new(client: &'a mut Client, filter: Filter) -> Self {
        Self { client, filter, cursor: None, last: false, page: Vec::new().into_iter() }
    }
}

impl Iterator for Flows<'_> {
    type Item = Result<Record, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(Ok(row.record));
            }
            if self.last {
                return None;
            }
            match self.client.page(self.cursor.take(), MAX_LIMIT, &self.filter) {
                Ok(page) => {
                    self.last = page.next.is_none();
                    self.cursor = page.next;
                    self.page = page.flows.into_iter();
                }
                Err(error) => {
                    self.last = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Client {
    /// All flows, page by page. A flow that is there from the first page to the last comes exactly once.
    pub fn flows(&mut self, filter: Filter) -> Flows<'_> {
        Flows::new(self, filter)
    }
}
