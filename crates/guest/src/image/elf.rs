//! Programs without what only debuggers read: half of an image otherwise.

/// Offsets in the header of a 64-bit ELF file, and sizes (System V ABI, chapter 4).
const HEADER: usize = 64;
const PROGRAM_HEADERS: usize = 32;
const SECTION_HEADERS: usize = 40;
const PROGRAM_HEADER_SIZE: usize = 54;
const PROGRAM_HEADER_COUNT: usize = 56;
const SECTION_COUNT: usize = 60;
/// In a program header: where its bytes are, and how many.
const OFFSET: usize = 8;
const FILE_SIZE: usize = 32;

/// The file up to the last byte that is loaded; unchanged if it is not a program, or already as short.
pub(super) fn without_symbols(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some(end) = end_of_loaded(&bytes) else { return bytes };
    bytes.truncate(end);
    // No section is there any more.
    for (at, len) in [(SECTION_HEADERS, 8), (SECTION_COUNT, 4)] {
        if let Some(field) = bytes.get_mut(at..at + len) {
            field.fill(0);
        }
    }
    bytes
}

fn end_of_loaded(bytes: &[u8]) -> Option<usize> {
    // 64 bits, the least byte first.
    if !bytes.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        return None;
    }
    let word = |at: usize| -> Option<usize> {
        let field: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(field)).ok()
    };
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let (first, size, count) = (word(PROGRAM_HEADERS)?, half(PROGRAM_HEADER_SIZE)?, half(PROGRAM_HEADER_COUNT)?);
    let mut end = first.checked_add(size.checked_mul(count)?)?.max(HEADER);
    for n in 0..count {
        let header = first.checked_add(n * size)?;
        end = end.max(word(header.checked_add(OFFSET)?)?.checked_add(word(header.checked_add(FILE_SIZE)?)?)?);
    }
    (count > 0 && end < bytes.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use super::*;

    #[test]
    fn a_program_runs_without_its_symbols() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let short = without_symbols(own.clone());
        assert!(short.len() < own.len() / 2 + own.len() / 4, "{} of {}", short.len(), own.len());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("short");
        fs::write(&path, &short).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let out = Command::new(&path).arg("--list").output().unwrap();
        assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("without_its_symbols"));
        assert_eq!(without_symbols(short.clone()), short);
    }

    #[test]
    fn what_is_no_program_stays_as_it_is() {
        let mut cut = fs::read(std::env::current_exe().unwrap()).unwrap();
        cut.truncate(80);
        for bytes in [Vec::new(), b"#!/bin/sh\n".to_vec(), vec![0x7f, b'E', b'L', b'F', 2, 1], cut] {
            assert_eq!(without_symbols(bytes.clone()), bytes);
        }
    }
}
