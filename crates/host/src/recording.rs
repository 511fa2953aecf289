//! What was read of a machine, as one text: for a report of a fault, and for tests with machines that are elsewhere.
//!
//! One entry a line, by whole path:
//!
//! ```text
//! linerate machine 1
//! # 9 lines follow
//! /sys/kernel/mm/ksm/run = 0
//! /proc/interrupts <<
//!            CPU0       CPU1
//! LOC:        100        200   Local timer interrupts
//! >>
//! /sys/bus/pci/devices/0000:37:00.0 -> ../../../devices/pci0000:36/0000:36:00.0/0000:37:00.0
//! /sys/bus/pci/devices/0000:37:00.0/config hex 86801258
//! /sys/bus/pci/devices/
//! /sys/kernel/debug/sched/preempt ! needs root
//! ```
//!
//! The second line shows a text that was cut off on its way; a tree written by hand has none, and may say a line for many CPUs:
//! `/sys/devices/system/cpu/cpu{0-3,8}/online = 1`; `{}` in the value is the number then.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::{beside::beside, boot_line::BootLine, cpu_list::parse_cpu_list, smbios};

/// The first line.
const HEAD: &str = "linerate machine 1";

/// The second line: how many lines are behind it.
const FOLLOW: (&str, &str) = ("# ", " lines follow");

/// Most links behind each other.
const MOST_LINKS: usize = 8;

/// The file that says, in the directory that an unpacked tree has in the place of what could not be read, why not.
pub(crate) const WHY_UNREADABLE: &str = ".unreadable";

/// Most entries of a recording: what braces say counts as what it stands for.
const MAX_ENTRIES: usize = 200_000;

/// What there is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A file.
    Bytes(Vec<u8>),
    /// A directory with these names.
    Directory(Vec<String>),
    /// Something: only whether it is there was asked.
    There,
    /// A link.
    Link(PathBuf),
    /// Something that could not be read, and why not.
    Unreadable(String),
}

/// Keeps what is read.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<BTreeMap<PathBuf, Entry>>);

impl Recorder {
    /// Keeps an entry. What is known of a path is not replaced by less.
    pub(crate) fn note(&self, path: &Path, entry: Entry) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A link to a directory whose names were read is a link all the same.
        let less = match (&entry, entries.get(path)) {
            (Entry::There, known) => known.is_some(),
            (Entry::Directory(_), Some(Entry::Link(_))) => true,
            _ => false,
        };
        if less {
            return;
        }
        entries.insert(path.to_owned(), entry);
    }

    /// Keeps that something could not be read. What is absent is not kept.
    pub(crate) fn note_error(&self, path: &Path, error: &io::Error) {
        if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            self.note(path, Entry::Unreadable(error.to_string()));
        }
    }

    pub(crate) fn recording(&self) -> Recording {
        let mut recording = Recording(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
        recording.hide();
        recording
    }
}

/// What was read of a machine. Names of the host, of users and of processes, addresses and serial numbers are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording(BTreeMap<PathBuf, Entry>);

/// Why a text is not a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRecording {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Recording {
    /// The text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (at, entry) in &self.0 {
            let path = escape(&at.to_string_lossy());
            match entry {
                Entry::There => text.push_str(&format!("{path}/\n")),
                Entry::Directory(names) => {
                    text.push_str(&format!("{path}/\n"));
                    // The names only of those that were not read.
                    for name in names.iter().filter(|name| !self.has_below(&at.join(name))) {
                        text.push_str(&format!("{path}/{}/\n", escape(name)));
                    }
                }
                Entry::Link(target) => text.push_str(&format!("{path} -> {}\n", target.display())),
                Entry::Unreadable(why) => text.push_str(&format!("{path} ! {}\n", why.replace('\n', " "))),
                Entry::Bytes(bytes) => text.push_str(&file(&path, bytes)),
            }
        }
        format!("{HEAD}\n{}{}{}\n{text}", FOLLOW.0, text.lines().count(), FOLLOW.1)
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// The line that is not one of a recording, and why.
    pub fn parse(text: &str) -> Result<Self, NotRecording> {
        let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
        let wrong = |line: usize, why: &str| NotRecording { line, why: why.to_owned() };
        if lines.next().is_none_or(|(_, line)| line.trim_end() != HEAD) {
            return Err(wrong(1, &format!("a recording begins with \"{HEAD}\"")));
        }
        let follow =
            text.lines().nth(1).and_then(|line| line.strip_prefix(FOLLOW.0)?.strip_suffix(FOLLOW.1)?.parse().ok());
        let are: usize = text.lines().count().saturating_sub(2);
        if follow.is_some_and(|follow: usize| follow != are) {
            return Err(wrong(are + 2, "it was cut off, or changed: its second line says how many follow"));
        }
        let mut entries = BTreeMap::new();
        while let Some((n, line)) = lines.next() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (paths, entry) = if let Some(path) = line.strip_suffix(" <<") {
                let mut body = String::new();
                loop {
                    let (_, line) = lines.next().ok_or_else(|| wrong(n, "no line \">>\" ends it"))?;
                    if line == ">>" {
                        break;
                    }
                    body.push_str(line);
                    body.push('\n');
                }
                (path, Line::Text(body))
            } else if let Some((path, text)) = line.split_once(" = ") {
                (path, Line::Text(format!("{text}\n")))
            } else if let Some(path) = line.strip_suffix(" =") {
                (path, Line::Text("\n".to_owned()))
            } else if let Some((path, target)) = line.split_once(" -> ") {
                (path, Line::Link(target))
            } else if let Some((path, why)) = line.split_once(" ! ") {
                (path, Line::Unreadable(why))
            } else if let Some((path, hex)) = line.split_once(" hex ") {
                (path, Line::Bytes(from_hex(hex).ok_or_else(|| wrong(n, "not bytes in hexadecimal"))?))
            } else if let Some(path) = line.strip_suffix('/') {
                (path, Line::Directory)
            } else {
                return Err(wrong(
                    n,
                    "must be PATH = TEXT, PATH <<, PATH hex BYTES, PATH -> LINK, PATH ! WHY or PATH/",
                ));
            };
            for (path, number) in expand(paths).ok_or_else(|| wrong(n, "not a list of numbers in braces"))? {
                let path = PathBuf::from(unescape(&path));
                if !is_sound(&path) {
                    return Err(wrong(n, "must be a whole path, without \"..\""));
                }
                entries.insert(path, entry.at(number));
                if entries.len() > MAX_ENTRIES {
                    return Err(wrong(n, &format!("more than {MAX_ENTRIES} entries")));
                }
            }
        }
        Ok(Self(entries))
    }

    /// Makes the tree below a directory.
    ///
    /// # Errors
    ///
    /// As of the system: two entries may exclude each other.
    pub fn unpack(&self, root: &Path) -> io::Result<()> {
        for (path, entry) in &self.0 {
            let path = self.behind_links(path);
            let at = root.join(path.strip_prefix("/").unwrap_or(&path));
            if let Some(parent) = at.parent() {
                fs::create_dir_all(parent)?;
            }
            match entry {
                Entry::Bytes(bytes) => fs::write(&at, bytes)?,
                // Read by two paths, one of them through a link.
                Entry::Link(target) if fs::read_link(&at).is_ok_and(|there| there == *target) => {}
                Entry::Link(target) => symlink(target, &at)?,
                Entry::There | Entry::Directory(_) => fs::create_dir_all(&at)?,
                Entry::Unreadable(why) => {
                    fs::create_dir_all(&at)?;
                    fs::write(at.join(WHY_UNREADABLE), why)?;
                }
            }
        }
        Ok(())
    }

    /// Where a path leads by the links that are recorded above it. A link may itself be recorded by a way through another.
    fn behind_links(&self, path: &Path) -> PathBuf {
        let Some((above, name)) = path.parent().zip(path.file_name()) else { return path.to_owned() };
        let mut at = self.behind_links(above);
        let mut entry = self.0.get(above);
        // A loop of links ends.
        for _ in 0..MOST_LINKS {
            let Some(Entry::Link(target)) =
                entry.filter(|entry| matches!(entry, Entry::Link(_))).or_else(|| self.0.get(&at))
            else {
                break;
            };
            at = beside(&at, target);
            entry = None;
        }
        at.join(name)
    }

    fn has_below(&self, path: &Path) -> bool {
        self.0.range(path.to_owned()..).next().is_some_and(|(found, _)| found.starts_with(path))
    }

    /// Takes away what says whose machine it is.
    fn hide(&mut self) {
        let entries = std::mem::take(&mut self.0);
        self.0 = entries.into_iter().map(|(path, entry)| (without_groups(path), entry)).collect();
        for (path, entry) in &mut self.0 {
            let Entry::Bytes(bytes) = entry else { continue };
            if path == Path::new("/sys/firmware/dmi/tables/DMI") {
                *bytes = smbios::only_memory(bytes);
                continue;
            }
            let hide = match path.to_str() {
                Some("/proc/cmdline") => hide_boot_line,
                Some("/proc/mounts") => hide_mounts,
                Some("/proc/swaps") => hide_swaps,
                Some("/proc/self/status") => hide_status,
                Some("/proc/self/cgroup" | "/proc/1/cgroup") => hide_groups,
                Some(command) if command.starts_with("/command/ip link show") => hide_addresses,
                _ => continue,
            };
            *bytes = hide(&String::from_utf8_lossy(bytes)).into_bytes();
        }
    }
}

/// The kernel's own file systems and the root. What is mounted elsewhere names disks, servers and users, and so do options.
fn hide_mounts(text: &str) -> String {
    const KERNELS: [&str; 5] = ["sysfs", "proc", "cgroup", "cgroup2", "tmpfs"];
    let line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, at, kind, options, ..] = words[..] else { return None };
        let below = |tops: &[&str]| tops.iter().any(|top| at.starts_with(top));
        let kept = at == "/" || kind == "hugetlbfs" || (KERNELS.contains(&kind) && below(&["/sys", "/proc", "/dev"]));
        let mut plain: Vec<String> = options
            .split(',')
            .filter(|option| !option.contains('=') || option.starts_with("pagesize="))
            .map(str::to_owned)
            .collect();
        // By where its layers are a container is known.
        let layers = ["docker", "containerd", "containers"].map(|sign| format!("/{sign}/"));
        plain.extend(layers.into_iter().filter(|sign| options.contains(sign)).map(|sign| format!("lowerdir={sign}")));
        // Pages of a virtual machine or a user may be mounted anywhere.
        let at = if kind == "hugetlbfs" && !below(&["/dev/"]) { "/-" } else { at };
        kept.then(|| format!("- {at} {kind} {} 0 0\n", plain.join(",")))
    };
    text.lines().filter_map(line).collect()
}

/// The head, and a line for each device or file that is swapped to.
fn hide_swaps(text: &str) -> String {
    text.lines().enumerate().map(|(n, line)| if n == 0 { format!("{line}\n") } else { "-\n".to_owned() }).collect()
}

/// The path of a limit of a control group, with the names that [`hide_groups`] leaves.
fn without_groups(path: PathBuf) -> PathBuf {
    const TOP: &str = "/sys/fs/cgroup";
    const KINDS: [&str; 4] = ["cpu", "cpuacct", "cpuset", "memory"];
    let Ok(below) = path.strip_prefix(TOP) else { return path };
    let names: Vec<String> = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let last = names.len().saturating_sub(1);
    let kept = |n: usize, name: &str| n == last || (n == 0 && name.split(',').all(|kind| KINDS.contains(&kind)));
    let shown = names.iter().enumerate().map(|(n, name)| if kept(n, name) { name.clone() } else { group(name) });
    Path::new(TOP).join(shown.collect::<PathBuf>())
}

/// A group's name, without whose it is.
fn group(name: &str) -> String {
    const SIGNS: [&str; 5] = ["docker", "kubepods", "containerd", "lxc", "libpod"];
    SIGNS.iter().find(|sign| name.contains(*sign)).map_or("-", |sign| *sign).to_owned()
}

/// The groups of a process: what a container is known by stays, names and numbers of containers, users and services go. Each name
/// becomes its place, so that limits of groups above are found where they are.
fn hide_groups(text: &str) -> String {
    let part = |name: &str| if name.is_empty() { String::new() } else { group(name) };
    let path = |path: &str| path.split('/').map(part).collect::<Vec<_>>().join("/");
    let line = |line: &str| {
        let (head, at) = line.rsplit_once(':')?;
        Some(format!("{head}:{}\n", path(at)))
    };
    text.lines().filter_map(line).collect()
}

/// What virtual functions may do. Addresses of theirs and of the card go, and everything else.
fn hide_addresses(text: &str) -> String {
    let functions = text.lines().map(str::trim).filter(|line| line.starts_with("vf "));
    let line = |line: &str| {
        let number = line.split_ascii_whitespace().nth(1).unwrap_or_default().trim_end_matches(',');
        let rights = line.split(", ").filter(|part| part.starts_with("spoof checking") || part.starts_with("trust"));
        format!("vf {number}, {}\n", rights.collect::<Vec<_>>().join(", "))
    };
    functions.map(line).collect()
}

/// The CPUs of a process; its name, its user and its groups go.
fn hide_status(text: &str) -> String {
    text.lines().filter(|line| line.starts_with("Cpus_allowed")).map(|line| format!("{line}\n")).collect()
}

/// What names disks, hosts and users in a boot line: its values go, its words stay.
fn hide_boot_line(line: &str) -> String {
    // What stands behind "--" is for the first process.
    let ours = line.split_once(" -- ").map_or(line, |(ours, _)| ours);
    format!("{}\n", BootLine::parse(ours).without_names())
}

/// A line of a text, before its path is expanded.
enum Line<'a> {
    Text(String),
    Bytes(Vec<u8>),
    Link(&'a str),
    Unreadable(&'a str),
    Directory,
}

impl Line<'_> {
    fn at(&self, number: Option<u32>) -> Entry {
        let filled = |text: &str| number.map_or_else(|| text.to_owned(), |n| text.replace("{}", &n.to_string()));
        match self {
            Self::Text(text) => Entry::Bytes(filled(text).into_bytes()),
            Self::Bytes(bytes) => Entry::Bytes(bytes.clone()),
            Self::Link(target) => Entry::Link(filled(target).into()),
            Self::Unreadable(why) => Entry::Unreadable((*why).to_owned()),
            Self::Directory => Entry::Directory(Vec::new()),
        }
    }
}

/// The paths that a path with braces stands for, each with its number.
fn expand(path: &str) -> Option<Vec<(String, Option<u32>)>> {
    let Some((before, rest)) = path.split_once('{') else { return Some(vec![(path.to_owned(), None)]) };
    let (list, after) = rest.split_once('}')?;
    let numbers = parse_cpu_list(list);
    let sound = !numbers.is_empty() && !after.contains('{');
    sound.then(|| numbers.into_iter().map(|n| (format!("{before}{n}{after}"), Some(n))).collect())
}

fn is_sound(path: &Path) -> bool {
    let mut parts = path.components();
    parts.next() == Some(Component::RootDir)
        && parts.clone().count() > 0
        && parts.all(|p| matches!(p, Component::Normal(_)))
}

/// A file as a line, or as many.
fn file(path: &str, bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.strip_suffix('\n').is_some_and(|line| !line.contains('\n') && !line.contains('\r')) => {
            format!("{path} = {text}").replace(" = \n", " =\n")
        }
        Ok(text) if text.ends_with('\n') && !text.contains('\r') && text.lines().all(|line| line != ">>") => {
            format!("{path} <<\n{text}>>\n")
        }
        _ => format!("{path} hex {}\n", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let text = text.trim().as_bytes();
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair.first()?)? << 4 | digit(pair.get(1)?)?) as u8);
    text.chunks(2).map(pair).collect()
}

/// Spaces and braces of a path, which mean something in a line.
fn escape(path: &str) -> String {
    path.replace('%', "%25").replace(' ', "%20").replace('\n', "%0a").replace('{', "%7b").replace('}', "%7d")
}

fn unescape(path: &str) -> String {
    path.replace("%7d", "}").replace("%7b", "{").replace("%0a", "\n").replace("%20", " ").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fact, Roots};

    const TREE: &str = "linerate machine 1
# by hand
/sys/a = 7
/sys/empty =
/sys/cpu{0-1,4}/kind = core {}
/sys/b <<
one
 = two
>>
/sys/c -> ../x/y
/sys/d hex 00ff7
/sys/e/
/sys/f ! needs root
";

    #[test]
    fn a_tree_by_hand_is_read_unpacked_and_read_again() {
        let odd = Recording::parse(TREE).unwrap_err();
        assert_eq!(odd.line, 11, "half a byte");
        let recording = Recording::parse(&TREE.replace("00ff7", "00ff")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        recording.unpack(dir.path()).unwrap();
        let roots = Roots::at(dir.path()).recording();
        let known = |path: &str| roots.fact(path).known();
        assert_eq!(known("/sys/a").as_deref(), Some("7"));
        assert_eq!(known("/sys/empty").as_deref(), Some(""));
        assert_eq!(known("/sys/cpu4/kind").as_deref(), Some("core 4"));
        assert_eq!(known("/sys/b").as_deref(), Some("one\n = two"));
        assert_eq!(roots.bytes("/sys/d").unwrap(), [0, 255]);
        assert_eq!(roots.link("/sys/c").unwrap(), Path::new("../x/y"));
        assert!(roots.is_there("/sys/e") && !roots.is_there("/sys/g"));
        assert_eq!(roots.fact("/sys/f"), Fact::Unreadable("needs root".to_owned()));
        assert_eq!(roots.names("/sys/f"), [""; 0]);
        assert_eq!(roots.names("/sys"), ["a", "b", "c", "cpu0", "cpu1", "cpu4", "d", "e", "empty", "f"]);
        // What was read is a recording from which the same is read.
        let again = Recording::parse(&roots.recorded().to_text()).unwrap();
        let other = tempfile::tempdir().unwrap();
        again.unpack(other.path()).unwrap();
        let copy = Roots::at(other.path());
        assert_eq!(copy.names("/sys"), roots.names("/sys"));
        for path in ["/sys/a", "/sys/b", "/sys/empty", "/sys/cpu4/kind", "/sys/none"] {
            assert_eq!(copy.fact(path), roots.fact(path), "{path}");
        }
        assert_eq!(copy.fact("/sys/f"), roots.fact("/sys/f"));
        assert_eq!(copy.fact("/sys/cpu0/kind"), Fact::Absent, "it was not read");
        assert_eq!(copy.bytes("/sys/d").unwrap(), [0, 255]);
    }

    #[test]
    fn what_is_no_recording_says_where() {
        for (text, line) in [
            ("", 1),
            ("hello\n", 1),
            ("linerate machine 1\n/sys/a\n", 2),
            ("linerate machine 1\n\nsys/a = 1\n", 3),
            ("linerate machine 1\n/sys/../etc/passwd = 1\n", 2),
            ("linerate machine 1\n/ = 1\n", 2),
            ("linerate machine 1\n/sys/a <<\nx\n", 2),
            ("linerate machine 1\n/sys/a{x} = 1\n", 2),
            ("linerate machine 1\n/sys/a{0 = 1\n", 2),
            ("linerate machine 1\n/sys/a{0-4000}/{0-4000} = 1\n", 2),
        ] {
            assert_eq!(Recording::parse(text).unwrap_err().line, line, "{text:?}");
        }
        // Two entries that exclude each other are an error of the system, not a tree.
        let both = Recording::parse("linerate machine 1\n/sys/a = 1\n/sys/a/b = 2\n").unwrap();
        assert!(both.unpack(tempfile::tempdir().unwrap().path()).is_err());
    }

    #[test]
    fn what_was_read_through_a_link_is_where_the_link_leads() {
        let text = "linerate machine 1
/sys/bus/devices/x -> ../../devices/pci/x
/sys/bus/devices/x/class = 2
/sys/bus/devices/x/net/eth0/flags = 1
/sys/bus/devices/x/driver -> ../../../bus/drivers/y
/sys/bus/devices/x/group -> ../../../groups/7
/sys/bus/devices/x/group/type = DMA
/sys/devices/pci/x/driver -> ../../../bus/drivers/y
/sys/devices/pci/x/vendor = 3
/sys/loop -> loop
/sys/loop/a = 4
";
        let recording = Recording::parse(text).unwrap();
        assert!(recording.unpack(tempfile::tempdir().unwrap().path()).is_err(), "nothing is below a loop");
        let recording = Recording::parse(text.split("/sys/loop").next().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        recording.unpack(dir.path()).unwrap();
        let roots = Roots::at(dir.path()).recording();
        assert_eq!(roots.names("/sys/bus/devices/x"), ["class", "driver", "group", "net", "vendor"]);
        assert_eq!(roots.link("/sys/bus/devices/x").unwrap(), Path::new("../../devices/pci/x"));
        assert_eq!(roots.names("/sys/bus/devices/x"), ["class", "driver", "group", "net", "vendor"]);
        assert_eq!(roots.fact("/sys/devices/pci/x/class").known().as_deref(), Some("2"));
        assert_eq!(roots.fact("/sys/groups/7/type").known().as_deref(), Some("DMA"));
        assert!(roots.recorded().to_text().contains("/sys/bus/devices/x -> ../../devices/pci/x\n"));
    }

    #[test]
    fn a_recording_does_not_say_whose_machine_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        let line =
            "BOOT_IMAGE=/vmlinuz root=UUID=12 rd.lvm.lv=secret/root isolcpus=2-3 quiet ip=10.0.0.1 -- --token=secret\n";
        fs::write(dir.path().join("proc/cmdline"), line).unwrap();
        let roots = Roots::at(dir.path()).recording();
        assert!(roots.fact("/proc/cmdline").known().unwrap().contains("secret"));
        let text = roots.recorded().to_text();
        assert!(text.contains("BOOT_IMAGE=- root=- rd.lvm.lv=- isolcpus=2-3 quiet ip=-\n"), "{text}");
    }

    #[test]
    fn mounts_and_the_process_say_no_names() {
        let mounts = "/dev/mapper/secret-root / ext4 rw,relatime,errors=remount-ro 0 0\n\
            sysfs /sys sysfs ro,nosuid 0 0\n\
            secret:/home /home/secret nfs4 rw,addr=10.0.0.1 0 0\n\
            nodev /dev/huge1G hugetlbfs rw,relatime,pagesize=1024M 0 0\n\
            nodev /home/secret/huge hugetlbfs rw,pagesize=2M 0 0\n\
            tmpfs /run/user/1000 tmpfs rw,uid=1000 0 0\nodd\n";
        let wanted = "- / ext4 rw,relatime 0 0\n- /sys sysfs ro,nosuid 0 0\n\
            - /dev/huge1G hugetlbfs rw,relatime,pagesize=1024M 0 0\n- /- hugetlbfs rw,pagesize=2M 0 0\n";
        assert_eq!(hide_mounts(mounts), wanted);
        let layers = "overlay / overlay rw,lowerdir=/var/lib/containerd/secret/fs 0 0\n";
        assert_eq!(hide_mounts(layers), "- / overlay rw,lowerdir=/containerd/ 0 0\n");
        let functions = "2: eth0: <UP> mtu 1500\n    link/ether 52:54:00:01:02:03\n    vf 3     link/ether 02:00:00:00:00:09 brd ff:ff:ff:ff:ff:ff, spoof checking on, link-state auto, trust off\n";
        assert_eq!(hide_addresses(functions), "vf 3, spoof checking on, trust off\n");
        let swaps = "Filename Type Size\n/home/secret/swapfile file 1024 0 -2\n/dev/sda2 partition 9 0 -3\n";
        assert_eq!(hide_swaps(swaps), "Filename Type Size\n-\n-\n");
        assert_eq!(hide_status("Name:\tsecret\nUid:\t1000\nCpus_allowed_list:\t0-3\n"), "Cpus_allowed_list:\t0-3\n");
    }

    #[test]
    fn odd_names_and_texts_come_back() {
        let mut entries = BTreeMap::new();
        for (path, bytes) in [
            ("/sys/a b{c}%20", b"x\n".as_slice()),
            ("/sys/no-end", b"x"),
            ("/sys/cr", b"x\r\n"),
            ("/sys/ends", b">>\nx\n"),
            ("/sys/nothing", b""),
        ] {
            entries.insert(PathBuf::from(path), Entry::Bytes(bytes.to_vec()));
        }
        let recording = Recording(entries);
        let text = recording.to_text();
        for (at, _) in text.match_indices('\n').skip(2).filter(|(at, _)| at + 1 < text.len()) {
            assert!(Recording::parse(&text[..=at]).is_err(), "cut off at a line's end: {}", &text[..=at]);
        }
        assert!(Recording::parse(&format!("{text}/sys/x = 1\n")).is_err(), "more than there was");
        assert_eq!(Recording::parse(&text), Ok(recording));
    }

    #[test]
    fn groups_are_known_by_what_they_are_and_not_by_whose() {
        let text =
            "0::/system.slice/docker-8ef9c3ae3f5c.scope/own\n4:cpu,cpuacct:/user.slice/user-1000.slice\nnonsense\n";
        assert_eq!(hide_groups(text), "0::/-/docker/-\n4:cpu,cpuacct:/-/-\n");
        let path = |text: &str| without_groups(text.into()).display().to_string();
        assert_eq!(
            path("/sys/fs/cgroup/system.slice/docker-8ef.scope/own/cpu.max"),
            "/sys/fs/cgroup/-/docker/-/cpu.max"
        );
        assert_eq!(
            path("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us"),
            "/sys/fs/cgroup/cpu,cpuacct/-/cpu.cfs_quota_us"
        );
        assert_eq!(path("/sys/fs/cgroup/cpu.max"), "/sys/fs/cgroup/cpu.max");
        assert_eq!(path("/proc/cmdline"), "/proc/cmdline");
    }
}
