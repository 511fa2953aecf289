//! A lab whose first process does not answer: found by its socket, and ended from outside.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal},
};

/// Flag of a socket that listens, in `/proc/net/unix`.
const LISTENS: u64 = 0x1_0000;

/// Kills the processes that listen on this abstract socket as their standard input, as the first process of a lab and the one
/// outside its namespaces do. The kernel ends everything else in the lab with them. Their numbers.
pub fn kill(socket: &str) -> Vec<u32> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let inputs: Vec<PathBuf> = inodes(&sockets, socket).map(|inode| format!("socket:[{inode}]").into()).collect();
    let holds = |pid: u32| fs::read_link(format!("/proc/{pid}/fd/0")).is_ok_and(|input| inputs.contains(&input));
    let open = |pid: u32| {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| holds(pid))?;
        // The process that is looked at and the one that is killed are the same: its number may be another's by now.
        let process = pidfd_open(number, PidfdFlags::empty()).ok()?;
        holds(pid).then_some((pid, process))
    };
    // All are found before the first is killed, which takes the others along.
    let found: Vec<_> = processes(Path::new("/proc")).into_iter().filter_map(open).collect();
    let gone = |(pid, process): (u32, OwnedFd)| match pidfd_send_signal(process, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Some(pid),
        Err(_) => None,
    };
    found.into_iter().filter_map(gone).collect()
}

fn processes(proc: &Path) -> Vec<u32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Inodes of the sockets that listen at an abstract name.
fn inodes<'a>(sockets: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    sockets.lines().filter_map(move |line| {
        // Num RefCount Protocol Flags Type St Inode Path
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let flags = u64::from_str_radix(words.get(3)?, 16).ok()?;
        let named = words.get(7)?.strip_prefix('@') == Some(name);
        (named && flags & LISTENS != 0).then(|| words[6])
    })
}

#[cfg(test)]
mod tests {
    use std::{
        os::{
            linux::net::SocketAddrExt,
            unix::{
                net::{SocketAddr, UnixListener},
                process::ExitStatusExt,
            },
        },
        process::Command,
    };

    use super::*;

    #[test]
    fn who_listens_as_its_input_is_killed_and_nobody_else() {
        let name = format!("linerate-silent-{}", std::process::id());
        let address = |name: &str| SocketAddr::from_abstract_name(name).unwrap();
        let asleep =
            |listener: UnixListener| Command::new("sleep").arg("60").stdin(OwnedFd::from(listener)).spawn().unwrap();
        let mut silent = asleep(UnixListener::bind_addr(&address(&name)).unwrap());
        let mut other = asleep(UnixListener::bind_addr(&address(&format!("{name}-other"))).unwrap());
        assert_eq!(kill(&name), [silent.id()]);
        assert_eq!(silent.wait().unwrap().signal(), Some(9));
        assert!(other.try_wait().unwrap().is_none(), "the other one sleeps on");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(kill(&name), Vec::<u32>::new(), "gone");
    }

    #[test]
    fn one_that_goes_with_the_other_is_named_too() {
        for n in 0..20 {
            // Of its own: a process that dies holds its socket for a moment more.
            let name = format!("linerate-silent-two-{}-{n}", std::process::id());
            let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
            let words = ["--fork", "--kill-child", "sleep", "60"];
            let mut outer = Command::new("unshare").args(words).stdin(OwnedFd::from(listener)).spawn().unwrap();
            let children = format!("/proc/{0}/task/{0}/children", outer.id());
            let inner = loop {
                match fs::read_to_string(&children).unwrap().trim().parse::<u32>() {
                    Ok(pid) => break pid,
                    Err(_) => std::thread::yield_now(),
                }
            };
            let mut killed = kill(&name);
            killed.sort_unstable();
            let mut both = [outer.id(), inner];
            both.sort_unstable();
            assert_eq!(killed, both);
            outer.wait().unwrap();
        }
    }

    #[test]
    fn a_socket_that_is_connected_is_not_one_that_listens() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 4711 @lab/0/a\n\
                       0000000000000000: 00000003 00000000 00000000 0001 03 4712 @lab/0/a\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 4713 @lab/0/ab\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 4714 /lab/0/a\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 4715\nx\n";
        assert_eq!(inodes(sockets, "lab/0/a").collect::<Vec<_>>(), ["4711"]);
    }
}
