//! What a file of the kernel says.

use std::io;

use serde::{Deserialize, Serialize};

/// What a file says: absent is not wrong, and what cannot be read is not absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// This.
    Known(T),
    /// There is no such file: the machine, or its kernel, does not have it.
    Absent,
    /// It is there and cannot be read, and why not.
    Unreadable(String),
}

impl<T> Fact<T> {
    /// What it says; `None` if it is not known.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// A reference to what it says; `None` if it is not known.
    pub fn as_known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// The same of something made of what it says.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(f(value)),
            Self::Absent => Fact::Absent,
            Self::Unreadable(why) => Fact::Unreadable(why),
        }
    }
}

impl<T> From<io::Result<T>> for Fact<T> {
    fn from(read: io::Result<T>) -> Self {
        match read {
            Ok(value) => Self::Known(value),
            // ENODEV, ENXIO: the file is there, what it stands for is not.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Self::Absent,
            Err(e) if matches!(e.raw_os_error(), Some(6 | 19)) => Self::Absent,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Self::Unreadable("needs root".to_owned()),
            // A tree made by hand may have a directory in the place of what could not be read.
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => Self::Unreadable("could not be read".to_owned()),
            Err(e) => Self::Unreadable(e.to_string()),
        }
    }
}
