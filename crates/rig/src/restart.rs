//! The program once more, with ordinary pages, when another process has taken the huge pages that were free.
//!
//! DPDK does not start twice in a process, so the process executes its program again.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::{self, Seek, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use rustix::fs::{memfd_create, MemfdFlags};

/// Set in a process that was started again.
const AGAIN: &str = "LINERATE_STARTED_AGAIN";

/// Whether this process was started again: `--memory auto` then means ordinary pages.
pub(crate) fn is_again() -> bool {
    env::var_os(AGAIN).is_some()
}

/// Starts this program again in this process, with the same arguments, if DPDK lost its huge pages to another process and
/// may use ordinary ones. Does nothing otherwise. `input`: what was read from standard input, to be read again.
///
/// Call it when all that this process holds is released.
pub fn start_again(input: Option<&[u8]>) {
    if !dpdk::lost_hugepages() || is_again() {
        return;
    }
    let _ = writeln!(
        io::stderr().lock(),
        "another process has taken the hugepages that were free: starting again with ordinary pages"
    );
    // The failure of the first start stands if there is no second.
    let _ =
        env::current_exe().and_then(|program| command(&program, env::args_os().skip(1), input)).map(|mut c| c.exec());
}

fn command(program: &Path, args: impl Iterator<Item = OsString>, input: Option<&[u8]>) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(args).env(AGAIN, "1");
    if let Some(input) = input {
        let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
        file.write_all(input)?;
        file.rewind()?;
        command.stdin(file);
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_gets_its_arguments_and_input_again_and_knows_it() {
        let args = ["-c", "cat; echo $LINERATE_STARTED_AGAIN $0", "x"].map(OsString::from);
        let job = vec![b'j'; 100_000];
        let output = command(Path::new("/bin/sh"), args.into_iter(), Some(&job)).unwrap().output().unwrap();
        assert!(output.stdout == [&job[..], b"1 x\n"].concat());
        // Nothing was lost here.
        start_again(None);
    }
}
