//! Journals are written, undone, damaged, and of other boots.

use super::*;

/// A machine with two knobs.
fn machine() -> (tempfile::TempDir, Roots) {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in
        [("sys/kernel/mm/a", "1\n"), ("sys/kernel/mm/b", "2\n"), ("proc/sys/kernel/random/boot_id", "first\n")]
    {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let roots = Roots::at(root.path());
    (root, roots)
}

fn file(path: &str, old: &str, new: &str) -> Change {
    Change::File { path: path.into(), old: old.into(), new: new.into(), first: None }
}

#[test]
fn changes_are_undone_backwards_and_once() {
    let (root, roots) = machine();
    let dir = root.path().join("journals");
    let mut journal = Journal::begin(&roots, &dir, "x").unwrap();
    assert_eq!(Journal::begin(&roots, &dir, "x").unwrap_err().kind(), io::ErrorKind::WouldBlock);
    for (path, old, new) in
        [("/sys/kernel/mm/a", "1", "7"), ("/sys/kernel/mm/b", "2", "8"), ("/sys/kernel/mm/a", "7", "9")]
    {
        journal.note(&file(path, old, new)).unwrap();
        roots.write(Path::new(path), new).unwrap();
    }
    assert_eq!((names(&dir), journal.path()), (vec!["x".to_owned()], path_of(&dir, "x").as_path()));
    let path = journal.path().to_owned();
    assert_eq!(undo(&roots, &path).unwrap_err().kind(), io::ErrorKind::WouldBlock, "it is still written");
    drop(journal);
    assert_eq!(Journal::begin(&roots, &dir, "x").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let undone = undo(&roots, &path).unwrap();
    assert_eq!(undone.back.len(), 3);
    assert_eq!((undone.left.len(), undone.failed.len(), undone.rebooted), (0, 0, false));
    let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
    assert_eq!((read("sys/kernel/mm/a"), read("sys/kernel/mm/b")), ("1".into(), "2".into()));
    assert_eq!(names(&dir), Vec::<String>::new());
    assert_eq!(undo(&roots, &path).unwrap(), Undone::default(), "twice is as once");
}

#[test]
fn what_was_undone_is_told_where_the_file_stays() {
    let (root, roots) = machine();
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    journal.note(&file("/sys/kernel/mm/a", "1", "7")).unwrap();
    roots.write(Path::new("/sys/kernel/mm/a"), "7").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    // Nobody removes a file by this name of it.
    let open = fs::File::open(&path).unwrap();
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
    let undone = undo(&roots, Path::new(&name)).unwrap();
    assert_eq!((undone.back.len(), undone.failed.len(), undone.stays.is_some()), (1, 0, true));
    assert!(path.exists() && in_force(&roots, &path).unwrap().0.is_empty());
    // The next one begins anew, since nothing in it is in force.
    drop(Journal::begin(&roots, root.path(), "x").unwrap());
    assert_eq!(undo(&roots, &path).unwrap(), Undone::default());
}

#[test]
fn a_crash_before_or_in_the_middle_of_a_change_is_undone() {
    let (root, roots) = machine();
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    // Written down and never made; and a line that was cut off.
    journal.note(&file("/sys/kernel/mm/a", "1", "7")).unwrap();
    fs::OpenOptions::new().append(true).open(journal.path()).unwrap().write_all(b"{\"file\":{\"pa").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    let cut = Undone { cut: true, ..Undone::default() };
    assert_eq!(undo(&roots, &path).unwrap(), cut);
    assert_eq!(fs::read_to_string(root.path().join("sys/kernel/mm/a")).unwrap(), "1\n", "not even written again");
    // Nothing but a head that was cut off.
    fs::write(path_of(root.path(), "y"), "{\"bo").unwrap();
    assert_eq!(undo(&roots, &path_of(root.path(), "y")).unwrap(), cut);
}

#[test]
fn what_somebody_else_changed_is_left_and_what_fails_keeps_the_journal() {
    let (root, roots) = machine();
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    for change in
        [file("/sys/kernel/mm/a", "1", "7"), file("/sys/kernel/mm/b", "2", "8"), file("/sys/kernel/mm/c", "0", "1")]
    {
        journal.note(&change).unwrap();
    }
    fs::write(root.path().join("sys/kernel/mm/a"), "5\n").unwrap();
    fs::write(root.path().join("sys/kernel/mm/b"), "8\n").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    let undone = undo(&roots, &path).unwrap();
    assert_eq!(undone.left, [(file("/sys/kernel/mm/a", "1", "7"), "5".to_owned())]);
    assert_eq!(undone.back, [file("/sys/kernel/mm/b", "2", "8")]);
    assert_eq!(undone.failed.len(), 1, "there is no such file");
    assert!(path.exists());
    fs::write(root.path().join("sys/kernel/mm/c"), "1\n").unwrap();
    assert_eq!(undo(&roots, &path).unwrap().back, [file("/sys/kernel/mm/c", "0", "1")]);
    assert!(!path.exists());
}

#[test]
fn what_the_kernel_made_of_a_value_counts_and_the_last_change_may_be_half_done() {
    let (root, roots) = machine();
    let (a, b) = (root.path().join("sys/kernel/mm/a"), root.path().join("sys/kernel/mm/b"));
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    journal.note(&file("/sys/kernel/mm/a", "1", "7")).unwrap();
    fs::write(&a, "00000007\n").unwrap();
    journal.became("00000007").unwrap();
    journal.note(&file("/sys/kernel/mm/b", "2", "8")).unwrap();
    // Neither: it died between the write and the line that says what came of it.
    fs::write(&b, "5\n").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    assert_eq!(undo(&roots, &path).unwrap().back.len(), 2);
    assert_eq!((fs::read_to_string(&a).unwrap(), fs::read_to_string(&b).unwrap()), ("1".into(), "2".into()));
    // The same with somebody else's value in the place of what came of it.
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    journal.note(&file("/sys/kernel/mm/a", "1", "7")).unwrap();
    journal.became("00000007").unwrap();
    fs::write(&a, "5\n").unwrap();
    drop(journal);
    assert_eq!(undo(&roots, &path).unwrap().left.len(), 1);
}

#[test]
fn files_of_ours_outlive_a_boot_and_are_removed_unless_they_were_edited() {
    let (root, roots) = machine();
    let at = |path: &str| root.path().join(path.trim_start_matches('/'));
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    for path in OURS {
        journal.note(&Change::Made { path: path.into(), text: "ours\n".into() }).unwrap();
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), "ours\n").unwrap();
    }
    journal.note(&file("/sys/kernel/mm/a", "1", "7")).unwrap();
    fs::write(at(OURS[1]), "edited\n").unwrap();
    fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "second\n").unwrap();
    fs::write(root.path().join("sys/kernel/mm/a"), "7\n").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    let undone = undo(&roots, &path).unwrap();
    assert_eq!((undone.back.len(), undone.left.len(), undone.rebooted), (3, 1, true));
    assert!(!at(OURS[0]).exists() && at(OURS[1]).exists());
    assert_eq!(fs::read_to_string(root.path().join("sys/kernel/mm/a")).unwrap(), "7\n", "of another boot");
    // No other file is one of ours.
    fs::write(&path, "{\"boot\":\"second\"}\n{\"made\":{\"path\":\"/etc/passwd\",\"text\":\"\"}}\n").unwrap();
    let undone = undo(&roots, &path).unwrap();
    assert_eq!((undone.back.len(), undone.damaged), (0, vec![2]));
}

#[test]
fn another_boot_has_undone_everything() {
    let (root, roots) = machine();
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    journal.note(&file("/sys/kernel/mm/a", "1", "7")).unwrap();
    fs::write(root.path().join("sys/kernel/mm/a"), "7\n").unwrap();
    fs::write(root.path().join("proc/sys/kernel/random/boot_id"), "second\n").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    assert_eq!(undo(&roots, &path).unwrap(), Undone { rebooted: true, ..Undone::default() });
    assert_eq!(fs::read_to_string(root.path().join("sys/kernel/mm/a")).unwrap(), "7\n", "it is of this boot");
    assert!(!path.exists());
}

#[test]
fn lines_that_cannot_be_read_keep_nobody_from_undoing_the_others() {
    let (root, roots) = machine();
    let path = path_of(root.path(), "x");
    let sound = "{\"file\":{\"path\":\"/sys/kernel/mm/a\",\"old\":\"1\",\"new\":\"7\"}}\n{\"became\":\"7\"}\n";
    let mut kept = Vec::new();
    for (text, lines) in [
        (format!("{{\"boot\":\"first\"}}\ngarbage\n{sound}"), vec![2]),
        (format!("\u{0}\u{0}\n{sound}x\n"), vec![1, 4]),
        // What came of a change that cannot be read is not of the one before.
        (format!("{{\"boot\":\"first\"}}\n{sound}x\n{{\"became\":\"5\"}}\n"), vec![4]),
    ] {
        fs::write(root.path().join("sys/kernel/mm/a"), "7\n").unwrap();
        fs::write(&path, &text).unwrap();
        let (known, unknown) = in_force(&roots, &path).unwrap();
        assert_eq!((known.len(), unknown), (1, lines.clone()));
        let undone = undo(&roots, &path).unwrap();
        assert_eq!((undone.back.len(), undone.damaged), (1, lines));
        kept.push(undone.kept.unwrap());
        assert_eq!(fs::read_to_string(root.path().join("sys/kernel/mm/a")).unwrap(), "1");
        // Another plan may be applied, and what was there can be read.
        assert!(!path.exists() && names(root.path()).is_empty());
        assert_eq!(fs::read_to_string(kept.last().unwrap()).unwrap(), text);
    }
    // None takes the place of another one: it may hold the only trace of an old value.
    kept.sort();
    assert_eq!((kept.len(), &kept), (3, &put_aside(root.path())));
    // Bytes that are not text spoil their line only, also where they would make another path or value of it.
    let other = "{\"file\":{\"path\":\"/sys/kernel/mm/b?\",\"old\":\"1\",\"new\":\"7\"}}\n";
    let mut bytes = format!("{{\"boot\":\"first\"}}\n{sound}{other}").into_bytes();
    bytes.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xff);
    fs::write(root.path().join("sys/kernel/mm/a"), "7\n").unwrap();
    fs::write(&path, &bytes).unwrap();
    let undone = undo(&roots, &path).unwrap();
    assert_eq!((undone.back.len(), undone.damaged), (1, vec![4]));
}

#[test]
fn a_file_that_is_no_journal_changes_nothing() {
    let (root, roots) = machine();
    let path = path_of(root.path(), "x");
    let head = "{\"boot\":\"first\"}\n";
    for lines in [
        "x\n".to_owned(),
        format!("{head}x\n"),
        format!("{head}{{\"file\":{{\"path\":\"/etc/passwd\",\"old\":\"x\",\"new\":\"y\"}}}}\n"),
        format!("{head}{{\"file\":{{\"path\":\"/sys/../etc/passwd\",\"old\":\"x\",\"new\":\"y\"}}}}\n"),
        format!("{head}{{\"file\":{{\"path\":\"sys/kernel/mm/a\",\"old\":\"x\",\"new\":\"1\"}}}}\n"),
        format!("{head}{{\"driver\":{{\"address\":\"../x\",\"old\":null,\"new\":\"y\"}}}}\n"),
    ] {
        fs::write(&path, &lines).unwrap();
        let undone = undo(&roots, &path).unwrap();
        assert!(undone.back.is_empty() && undone.left.is_empty() && undone.failed.is_empty(), "{lines}");
        assert_eq!((undone.damaged.len(), path.exists()), (1, false), "{lines}");
        assert_eq!(fs::read_to_string(undone.kept.unwrap()).unwrap(), lines, "it is kept");
    }
    assert_eq!(fs::read_to_string(root.path().join("sys/kernel/mm/a")).unwrap(), "1\n");
}

#[test]
fn a_journal_without_its_head_is_undone_whole() {
    let (root, roots) = machine();
    let path = path_of(root.path(), "x");
    let line = |name: &str, old: &str| {
        format!("{{\"file\":{{\"path\":\"/sys/kernel/mm/{name}\",\"old\":\"{old}\",\"new\":\"7\"}}}}\n{{\"became\":\"7\"}}\n")
    };
    fs::write(&path, format!("{}{}", line("a", "1"), line("b", "2"))).unwrap();
    for name in ["a", "b"] {
        fs::write(root.path().join("sys/kernel/mm").join(name), "7\n").unwrap();
    }
    let undone = undo(&roots, &path).unwrap();
    assert_eq!((undone.back.len(), undone.damaged.len(), undone.kept), (2, 0, None));
}

#[test]
fn no_text_is_an_empty_line_and_what_does_not_come_back_is_told() {
    let (root, roots) = machine();
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    journal.note(&file("/sys/kernel/mm/a", "", "7")).unwrap();
    fs::write(root.path().join("sys/kernel/mm/a"), "7\n").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    assert_eq!(undo(&roots, &path).unwrap().back.len(), 1);
    assert_eq!(
        fs::read_to_string(root.path().join("sys/kernel/mm/a")).unwrap(),
        "\n",
        "a write of no bytes does nothing"
    );
    // A file that takes a write and stays what it is.
    let mut journal = Journal::begin(&roots, root.path(), "x").unwrap();
    journal.note(&file("/sys/kernel/mm/b", "2", "0")).unwrap();
    drop(journal);
    let at = root.path().join("sys/kernel/mm/b");
    fs::remove_file(&at).unwrap();
    std::os::unix::fs::symlink("/dev/null", &at).unwrap();
    let undone = undo(&roots, &path).unwrap();
    assert_eq!((undone.back.len(), undone.failed.len(), path.exists()), (0, 1, true), "{undone:?}");
}

#[test]
fn a_journal_with_nothing_to_undo_is_none() {
    let (root, roots) = machine();
    let path = path_of(root.path(), "x");
    let head = "{\"boot\":\"first\"}\n";
    let change = "{\"file\":{\"path\":\"/sys/kernel/mm/a\",\"old\":\"1\",\"new\":\"7\"}}\n";
    let earlier = format!("{{\"boot\":\"zero\"}}\n{change}");
    // Empty, cut off, without a change, with one that was never made, of an earlier boot.
    for text in ["", "{\"bo", head, &format!("{head}{change}"), &earlier, &format!("{earlier}x\n")] {
        fs::write(&path, text).unwrap();
        assert_eq!(in_force(&roots, &path).unwrap().0, []);
        drop(Journal::begin(&roots, root.path(), "x").unwrap());
        assert!(fs::read_to_string(&path).unwrap().starts_with(head), "{text}");
        assert_eq!(undo(&roots, &path).unwrap(), Undone::default());
    }
    // One that was made, and lines of this boot that cannot be read.
    for (text, value) in [(format!("{head}{change}"), "7"), (format!("{head}x\n"), "1")] {
        fs::write(root.path().join("sys/kernel/mm/a"), value).unwrap();
        fs::write(&path, &text).unwrap();
        let refused = Journal::begin(&roots, root.path(), "x").unwrap_err();
        assert_eq!((refused.kind(), fs::read_to_string(&path).unwrap()), (io::ErrorKind::AlreadyExists, text));
    }
}

#[test]
fn a_journal_that_cannot_be_begun_leaves_no_file() {
    let (root, roots) = machine();
    // Every write to it fails: no space is left on the device.
    let path = path_of(root.path(), "x");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let failed = Journal { file, path: path.clone() }.begun(&roots).unwrap_err();
    assert_eq!((failed.kind(), path.is_symlink()), (io::ErrorKind::StorageFull, false));
}

#[test]
fn a_file_that_another_one_took_the_place_of_is_not_locked() {
    let (root, roots) = machine();
    drop(Journal::begin(&roots, root.path(), "x").unwrap());
    let path = path_of(root.path(), "x");
    let opened = fs::File::open(&path).unwrap();
    undo(&roots, &path).unwrap();
    assert_eq!(lock(&opened, &path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(Journal::begin(&roots, root.path(), "x").unwrap());
    assert_eq!(lock(&opened, &path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_driver_is_set_only_by_plain_names() {
    let sound =
        |address: &str, new: &str| is_sound(&Change::Driver { address: address.into(), old: None, new: new.into() });
    assert!(sound("0000:37:00.0", "vfio-pci"));
    for (address, new) in
        [("0000:37:00.0", "../x"), ("0000:37:00.0", ""), ("", "vfio-pci"), ("..", "vfio-pci"), ("0000:37:00.0/..", "x")]
    {
        assert!(!sound(address, new), "{address} {new}");
    }
}
