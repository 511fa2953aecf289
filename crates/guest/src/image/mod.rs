//! The image that a guest boots: an archive in memory with Linerate as `/init`.

mod archive;
mod closure;
mod elf;
mod modules;
mod paths;

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
};

use failure::Failure;
use lab::vm::{
    kernel::{Kernel, REMEDY},
    GuestSpec, INIT,
};

use archive::Archive;
use paths::in_image;

/// Where a guest finds what it is told, and its modules, in the order in which they are loaded.
pub const SPEC: &str = "/linerate/guest.json";
/// The directory of its modules.
pub const MODULES: &str = "/linerate/modules";

/// Longer than any chain of links.
const MOST_LINKS: usize = 8;

/// Directories that a guest's kernel or programs expect.
const DIRECTORIES: [&str; 10] =
    ["/dev", "/proc", "/sys", "/run", "/tmp", "/etc", "/var/run", "/root", "/linerate", MODULES];

/// Writes a guest's image to `initrd`, and a link to the kernel that it is made for to `kernel`.
///
/// # Errors
///
/// (machine) for a kernel, a module or a program that is missing, with the command that mends it, and for a full disk.
pub fn make(spec: &GuestSpec, initrd: &Path, kernel: &Path) -> Result<(), Failure> {
    let found = Kernel::find().ok_or_else(|| {
        Failure::machine(format!("no kernel with virtio modules below /boot or /var/lib/linerate/kernel: {REMEDY}"))
    })?;
    let full = |e: std::io::Error| Failure::machine(format!("{}: {e}", initrd.display()));
    let mut archive = Archive::new(BufWriter::new(fs::File::create(initrd).map_err(full)?));
    for (link, to) in [("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")] {
        archive.link(link, to).map_err(full)?;
    }
    for dir in DIRECTORIES {
        archive.directory(dir).map_err(full)?;
    }
    let own = std::env::current_exe().map_err(|e| Failure::machine(format!("where this program is: {e}")))?;
    let bytes = fs::read(&own).map_err(|e| Failure::machine(format!("{}: {e}", own.display())))?;
    archive.file(INIT, &elf::without_symbols(bytes)).map_err(full)?;
    for path in closure::of(&own, spec)? {
        add(&mut archive, &path, full)?;
    }
    for (n, (name, bytes)) in modules::in_order(&found, &spec.modules)?.into_iter().enumerate() {
        archive.file(&format!("{MODULES}/{n:03}-{name}.ko"), &bytes).map_err(full)?;
    }
    let text = serde_json::to_vec(spec).map_err(Failure::failed)?;
    archive.file(SPEC, &text).map_err(full)?;
    archive.end().map_err(full)?;
    let _ = fs::remove_file(kernel);
    std::os::unix::fs::symlink(&found.image, kernel).map_err(|e| Failure::machine(format!("{}: {e}", kernel.display())))
}

/// Adds a file, and the links that lead to it as links: a library under two names must stay one file, or a loader has it
/// twice.
fn add<W: Write>(archive: &mut Archive<W>, path: &Path, full: impl Fn(io::Error) -> Failure) -> Result<(), Failure> {
    let fail = |path: &Path, e: io::Error| Failure::machine(format!("{}: {e}", path.display()));
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(to) = fs::read_link(&path) else { break };
        let next = path.parent().unwrap_or(Path::new("/")).join(&to);
        let to = if to.is_absolute() { in_image(&to) } else { to.to_string_lossy().into_owned() };
        archive.link(&in_image(&path), &to).map_err(&full)?;
        path = next;
    }
    // `..` in a link: where the kernel would look, directories that are links included.
    let dir = path.parent().unwrap_or(Path::new("/"));
    let dir = dir.canonicalize().map_err(|e| fail(&path, e))?;
    let file = dir.join(path.file_name().unwrap_or_default());
    let bytes = fs::read(&file).map_err(|e| fail(&file, e))?;
    archive.file(&in_image(&file), &elf::without_symbols(bytes)).map_err(full)
}
