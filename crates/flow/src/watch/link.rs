//! A connection to one logger, and its errors.

use crate::{
    client::{Client, ClientError, ClientSpec},
    protocol::{Ask, What},
};

use failure::Exit;

/// Why a logger could not be read: one line, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Machine: no connection. Usage: a refusal on either side. Failed: the connection broke, or another protocol.
    pub exit: Exit,
    /// One line.
    pub text: String,
}

impl Trouble {
    /// The logger refuses, or its certificate is not trusted.
    pub fn refused(text: impl ToString) -> Self {
        Self { exit: Exit::Usage, text: text.to_string() }
    }

    /// The connection broke, or the logger speaks another protocol.
    pub fn broken(text: impl ToString) -> Self {
        Self { exit: Exit::Failed, text: text.to_string() }
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match error {
            // The caller shows the address.
            ClientError::Connect { why, .. } => Self { exit: Exit::Machine, text: plain(&why) },
            ClientError::Refused(why) => Self::refused(why),
            ClientError::Trust { .. } => Self::refused(error),
            ClientError::Lost(why) => Self::broken(plain(&why)),
            other => Self::broken(other),
        }
    }
}

/// A logger that answers.
pub trait Talk {
    /// The logger's name.
    fn name(&self) -> &str;

    /// Sends a request and waits for the answer.
    fn ask(&mut self, ask: Ask) -> Result<What, Trouble>;
}

impl Talk for Client {
    fn name(&self) -> &str {
        &self.hello().name
    }

    fn ask(&mut self, ask: Ask) -> Result<What, Trouble> {
        match Client::ask(self, ask) {
            // A refused request does not end the connection.
            Err(ClientError::Refused(why)) => Ok(What::Error(why)),
            answer => Ok(answer?),
        }
    }
}

/// Connects, and shows the token if the logger asks for one.
pub fn connect(spec: &ClientSpec) -> Result<Client, Trouble> {
    Client::connect(spec).map_err(|error| match error {
        ClientError::NeedsToken => Trouble::refused("a token is needed: give one with --token-file FILE"),
        other => other.into(),
    })
}

/// A message of the kernel for the middle of a sentence: without its number, and with a small first letter.
fn plain(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|c| c.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
