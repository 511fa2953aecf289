//! A machine that is looked at: this one, a tree, or a recording that is unpacked meanwhile.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use crate::{recording::Recording, roots::Roots};

/// Longest recording that is read.
const MAX_BYTES: u64 = 64 << 20;

/// Where a machine's files are, for as long as this lives.
#[derive(Debug)]
pub struct Place {
    roots: Roots,
    _unpacked: Option<tempfile::TempDir>,
}

impl Place {
    /// This machine.
    pub fn here() -> Self {
        Self { roots: Roots::default(), _unpacked: None }
    }

    /// A directory with `proc` and `sys` in it, or a recording.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a line.
    pub fn at(root: &Path) -> Result<Self, String> {
        if root.is_dir() {
            let known = ["proc", "sys"].iter().any(|name| root.join(name).is_dir());
            let place = Self { roots: Roots::at(root), _unpacked: None };
            return known.then_some(place).ok_or_else(|| "holds neither proc nor sys".to_owned());
        }
        let mut text = String::new();
        let read = File::open(root).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
        read.map_err(|e| match e.kind() {
            ErrorKind::NotFound => "no such file: check the path".to_owned(),
            ErrorKind::InvalidData => "not a recording: it is not text".to_owned(),
            _ => e.to_string(),
        })?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("longer than {} MiB, so not a recording", MAX_BYTES >> 20));
        }
        let recording = Recording::parse(&text).map_err(|e| format!("line {}: {}", e.line, e.why))?;
        let dir = tempfile::tempdir().map_err(|e| format!("cannot be unpacked: {e}"))?;
        recording.unpack(dir.path()).map_err(|e| format!("cannot be unpacked: {e}"))?;
        Ok(Self { roots: Roots::at(dir.path()), _unpacked: Some(dir) })
    }

    /// Its files.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_a_recording_and_what_is_neither() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("machine");
        assert!(Place::at(&file).unwrap_err().contains("no such file"));
        assert!(Place::at(dir.path()).unwrap_err().contains("neither"));
        std::fs::write(&file, "hello\n").unwrap();
        assert!(Place::at(&file).unwrap_err().starts_with("line 1"));
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(Place::at(&file).unwrap_err().contains("not text"));
        assert!(Place::at(Path::new("/dev/zero")).unwrap_err().contains("longer than"));
        std::fs::write(&file, "linerate machine 1\n/sys/a = 1\n").unwrap();
        let place = Place::at(&file).unwrap();
        let unpacked = place.roots().of_machine("/");
        assert_eq!(place.roots().value::<u32>("/sys/a"), Some(1));
        assert!(Place::at(&unpacked).is_ok() && Place::here().roots().is_here());
        drop(place);
        assert!(!unpacked.exists());
    }
}
