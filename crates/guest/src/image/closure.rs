//! The files that programs need: themselves and their libraries, as this machine's loader finds them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use failure::Failure;
use lab::vm::GuestSpec;

use super::paths::{on_path, same_in_image};

/// Where libraries are that programs look for at run time: Debian's multiarch directory, and where others have them.
const LIBRARY_DIRS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/libexec",
    "/usr/local/lib",
];

/// All files besides `own` itself, which is the guest's first process.
pub(super) fn of(own: &Path, spec: &GuestSpec) -> Result<Vec<PathBuf>, Failure> {
    let mut roots = Vec::new();
    for program in &spec.programs {
        let found = on_path(program).ok_or_else(|| missing(program))?;
        roots.push(found);
    }
    for library in &spec.libraries {
        let found = matching(library);
        if found.is_empty() {
            return Err(missing(library));
        }
        roots.extend(found);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf| {
        if !files.iter().any(|file| same_in_image(file, &path)) {
            files.push(path);
        }
    };
    for root in roots.iter().map(PathBuf::as_path).chain([own]) {
        libraries(root)?.into_iter().for_each(&mut add);
    }
    roots.into_iter().for_each(&mut add);
    Ok(files)
}

/// What the loader would load for this program or library.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, Failure> {
    // A script, or a file that is read only.
    if !fs::read(program).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")) {
        return Ok(Vec::new());
    }
    let out = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| Failure::machine(format!("cannot run ldd (Debian package libc-bin): {e}")))?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if let Some(line) = text.lines().find(|line| line.contains("not found")) {
        return Err(Failure::machine(format!("{}: {}", program.display(), line.trim())));
    }
    Ok(text.lines().filter_map(file_of).collect())
}

/// The file in a line of `ldd`: `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x0)`, or the loader's own `/lib64/ld... (0x0)`.
fn file_of(line: &str) -> Option<PathBuf> {
    let (path, _) = line.split_once(" => ").map_or(line, |(_, path)| path).trim().split_once(" (")?;
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// The files whose path below a directory of libraries begins like this; `*` stands for anything in a directory's name.
fn matching(beginning: &str) -> BTreeSet<PathBuf> {
    LIBRARY_DIRS
        .iter()
        .find_map(|dir| Some(below(Path::new(dir), beginning)).filter(|found| !found.is_empty()))
        .unwrap_or_default()
}

fn below(dir: &Path, beginning: &str) -> BTreeSet<PathBuf> {
    let (first, rest) = beginning.split_once('/').map_or((beginning, None), |(first, rest)| (first, Some(rest)));
    let wanted = first.trim_end_matches('*');
    let Ok(entries) = fs::read_dir(dir) else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match rest {
            Some(rest) if name == first || first.ends_with('*') && name.starts_with(wanted) => {
                found.extend(below(&entry.path(), rest));
            }
            None if name.starts_with(wanted) => {
                found.insert(entry.path());
            }
            _ => {}
        }
    }
    found
}

fn missing(what: &str) -> Failure {
    let package = match what {
        "dpdk-testpmd" => "dpdk-dev",
        "ip" => "iproute2",
        "sysctl" => "procps",
        "stdbuf" | "test" => "coreutils",
        what if what.contains("dpdk/") => "dpdk-dev",
        what if what.contains("ovs") || what.contains("openvswitch") => "openvswitch-switch",
        _ => return Failure::machine(format!("a guest needs {what}, which is not on this machine")),
    };
    Failure::machine(format!("a guest needs {what}, which is not on this machine: sudo apt-get install -y {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_lines_are_read() {
        let file = |line| file_of(line).map(|path| path.display().to_string());
        assert_eq!(file("\tlibm.so.6 => /lib/x/libm.so.6 (0x00007f)").as_deref(), Some("/lib/x/libm.so.6"));
        assert_eq!(file("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)").as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(file("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(file("\tstatically linked"), None);
    }

    #[test]
    fn a_program_comes_with_its_libraries_once() {
        let spec = GuestSpec { programs: vec!["test".into(), "stdbuf".into()], ..GuestSpec::default() };
        let files = of(&std::env::current_exe().unwrap(), &spec).unwrap();
        let named = |end: &str| files.iter().filter(|file| file.to_string_lossy().ends_with(end)).count();
        assert_eq!((named("/test"), named("/stdbuf"), named("/libc.so.6")), (1, 1, 1), "{files:?}");
        let lacks = GuestSpec { programs: vec!["no-such-program".into()], ..GuestSpec::default() };
        assert_eq!(of(Path::new("/bin/true"), &lacks).unwrap_err().exit, failure::Exit::Machine);
        let lacks = GuestSpec { libraries: vec!["no-such-dir/lib.so".into()], ..GuestSpec::default() };
        assert!(of(Path::new("/bin/true"), &lacks).is_err());
    }

    #[test]
    fn a_star_stands_for_the_rest_of_a_directory() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("pmds-23.0")).unwrap();
        for name in ["librte_net_virtio.so", "librte_net_virtio.so.23", "librte_net_null.so"] {
            fs::write(root.path().join("pmds-23.0").join(name), "").unwrap();
        }
        assert_eq!(below(root.path(), "pmds-*/librte_net_virtio.so").len(), 2);
        assert_eq!(below(root.path(), "pmds-22*/librte_net_virtio.so").len(), 0);
    }
}
