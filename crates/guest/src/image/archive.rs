//! A cpio archive in the form that the kernel unpacks (`newc`).

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

/// Kinds of files, as `st_mode` has them.
const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// An archive that is being written.
pub(super) struct Archive<W: Write> {
    out: W,
    seen: BTreeSet<String>,
    inode: u32,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, seen: BTreeSet::new(), inode: 0 }
    }

    /// A directory, with those above it.
    pub(super) fn directory(&mut self, path: &str) -> io::Result<()> {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            let part = path.get(..end).unwrap_or(path);
            if self.seen.insert(part.to_owned()) {
                self.entry(part, DIRECTORY, &[])?;
            }
        }
        Ok(())
    }

    /// A file that may be run; a second one of the same path is left out.
    pub(super) fn file(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.below(path)?;
        let path = path.trim_start_matches('/');
        match self.seen.insert(path.to_owned()) {
            true => self.entry(path, FILE, bytes),
            false => Ok(()),
        }
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, to: &str) -> io::Result<()> {
        self.below(path)?;
        let path = path.trim_start_matches('/');
        match self.seen.insert(path.to_owned()) {
            true => self.entry(path, LINK, to.as_bytes()),
            false => Ok(()),
        }
    }

    fn below(&mut self, path: &str) -> io::Result<()> {
        match path.trim_start_matches('/').rsplit_once('/') {
            Some((dir, _)) => self.directory(dir),
            None => Ok(()),
        }
    }

    fn entry(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let size = u32::try_from(bytes.len()).map_err(|_| io::Error::other(format!("{path}: 4 GiB and more")))?;
        let mut entry = cpio::newc::Builder::new(path).ino(self.inode).mode(mode).nlink(1).write(&mut self.out, size);
        entry.write_all(bytes)?;
        entry.finish().map(drop)
    }

    /// The end of the archive.
    pub(super) fn end(mut self) -> io::Result<()> {
        cpio::newc::trailer(&mut self.out)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_what_was_put_in_once() {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        archive.link("/lib", "usr/lib").unwrap();
        archive.file("/usr/lib/a", b"one").unwrap();
        archive.file("/usr/lib/a", b"two").unwrap();
        archive.directory("/usr/lib").unwrap();
        archive.directory("/dev").unwrap();
        archive.end().unwrap();
        let (mut found, mut rest) = (Vec::new(), io::Cursor::new(bytes));
        loop {
            let mut reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut text = String::new();
            io::Read::read_to_string(&mut reader, &mut text).unwrap();
            found.push((name, mode, text));
            rest = reader.finish().unwrap();
        }
        let wanted = [
            ("lib", LINK, "usr/lib"),
            ("usr", DIRECTORY, ""),
            ("usr/lib", DIRECTORY, ""),
            ("usr/lib/a", FILE, "one"),
            ("dev", DIRECTORY, ""),
        ];
        let found: Vec<_> = found.iter().map(|(n, m, t)| (n.as_str(), *m, t.as_str())).collect();
        assert_eq!(found, wanted);
    }
}
