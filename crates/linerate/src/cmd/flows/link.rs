//! A connection to one logger, and what it means when there is none.

use flow::{
    client::{Client, ClientError, ClientSpec},
    protocol::{Ask, What},
};

use failure::Exit;

/// Why a logger could not be read: one line, and what it means for the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Machine: nobody answers. Usage: it refuses us, or we it. Failed: it broke off, or speaks something else.
    pub exit: Exit,
    /// One line.
    pub text: String,
}

impl Trouble {
    /// It refuses us.
    pub fn refused(text: impl ToString) -> Self {
        Self { exit: Exit::Usage, text: text.to_string() }
    }

    /// It broke off, or speaks something else.
    pub fn broken(text: impl ToString) -> Self {
        Self { exit: Exit::Failed, text: text.to_string() }
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match error {
            // Where is known to who reads this.
            ClientError::Connect { why, .. } => Self { exit: Exit::Machine, text: plain(&why) },
            ClientError::Refused(why) => Self::refused(why),
            ClientError::Trust { .. } => Self::refused(error),
            ClientError::Lost(why) => Self::broken(plain(&why)),
            other => Self::broken(other),
        }
    }
}

/// Someone who answers.
pub trait Talk {
    /// The logger's name, as it says.
    fn name(&self) -> &str;

    /// Asks and waits for the answer.
    fn ask(&mut self, ask: Ask) -> Result<What, Trouble>;
}

impl Talk for Client {
    fn name(&self) -> &str {
        &self.hello().name
    }

    fn ask(&mut self, ask: Ask) -> Result<What, Trouble> {
        match Client::ask(self, ask) {
            // One thing refused is no reason to part.
            Err(ClientError::Refused(why)) => Ok(What::Error(why)),
            said => Ok(said?),
        }
    }
}

/// Connects, and shows the token if one is asked for.
pub fn connect(spec: &ClientSpec) -> Result<Client, Trouble> {
    Client::connect(spec).map_err(|error| match error {
        ClientError::NeedsToken => Trouble::refused("a token is needed: give one with --token-file FILE"),
        other => other.into(),
    })
}

/// As the kernel says it, without its number and in the middle of a sentence.
fn plain(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|c| c.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
