//! The kernel that guests boot: one of this machine's, with its modules.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The command that mends a missing kernel.
pub const REMEDY: &str = "sudo apt-get install -y linux-image-cloud-amd64";

/// Where kernels are looked for: one unpacked for guests first, then those installed.
const ROOTS: [&str; 2] = ["/var/lib/linerate/kernel", "/"];

/// What a guest cannot do without, as a module or built in: its ports and its control.
const NEEDED: [&str; 3] = ["virtio_pci", "virtio_console", "virtio_net"];

/// A kernel and its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its release, `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The file that boots.
    pub image: PathBuf,
    /// The directory of its modules.
    pub modules: PathBuf,
}

impl Kernel {
    /// The kernel for guests: of those that have what a guest needs, one made for virtual machines (`cloud`) first, since it
    /// is smaller and starts faster, then the newest.
    pub fn find() -> Option<Self> {
        ROOTS.iter().find_map(|root| Self::below(Path::new(root)))
    }

    /// The best kernel below a root directory.
    pub fn below(root: &Path) -> Option<Self> {
        let names = fs::read_dir(root.join("boot")).ok()?.flatten();
        let kernels = names.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let release = name.strip_prefix("vmlinuz-")?.to_owned();
            let places = ["lib/modules", "usr/lib/modules"].map(|dir| root.join(dir).join(&release));
            let modules = places.into_iter().find(|dir| dir.is_dir())?;
            Some(Self { release, image: entry.path(), modules })
        });
        let mut fit: Vec<Self> = kernels.filter(Self::has_what_guests_need).collect();
        fit.sort_by_key(|kernel| (kernel.release.contains("cloud"), version(&kernel.release)));
        fit.pop()
    }

    fn has_what_guests_need(&self) -> bool {
        let files = module_files(&self.modules);
        let built_in = self.built_in();
        NEEDED
            .iter()
            .all(|name| built_in.contains(&(*name).to_owned()) || files.iter().any(|f| module_name(f) == *name))
    }

    /// The names of modules that are built in.
    pub fn built_in(&self) -> Vec<String> {
        let text = fs::read_to_string(self.modules.join("modules.builtin")).unwrap_or_default();
        text.lines().map(|line| module_name(Path::new(line))).collect()
    }
}

/// The numbers in a release, to compare by.
fn version(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// The files of all modules below a directory of modules.
pub fn module_files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut dirs) = (Vec::new(), vec![dir.join("kernel")]);
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(path),
                Ok(_) if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".ko")) => {
                    found.push(path)
                }
                _ => {}
            }
        }
    }
    found
}

/// A module's name: that of its file without its ending, with `_` for `-`.
pub fn module_name(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split(".ko").next().unwrap_or_default().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(root: &Path, release: &str, modules: &[&str]) {
        fs::create_dir_all(root.join("boot")).unwrap();
        fs::write(root.join("boot").join(format!("vmlinuz-{release}")), "").unwrap();
        let dir = root.join("lib/modules").join(release).join("kernel/drivers");
        fs::create_dir_all(&dir).unwrap();
        for name in modules {
            fs::write(dir.join(format!("{name}.ko")), "").unwrap();
        }
    }

    #[test]
    fn a_kernel_for_guests_is_found() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        assert_eq!(Kernel::below(at), None);
        kernel(at, "6.12.9-amd64", &["virtio_net", "virtio_pci"]);
        assert_eq!(Kernel::below(at), None, "without a console nothing can be asked");
        let built_in = "kernel/drivers/char/virtio_console.ko\n";
        fs::write(at.join("lib/modules/6.12.9-amd64/modules.builtin"), built_in).unwrap();
        assert_eq!(Kernel::below(at).unwrap().release, "6.12.9-amd64");
        kernel(at, "6.12.10-amd64", &["virtio_net", "virtio-pci", "virtio_console"]);
        assert_eq!(Kernel::below(at).unwrap().release, "6.12.10-amd64", "the newest");
        kernel(at, "6.1.0-56-cloud-amd64", &["virtio_net", "virtio_pci", "virtio_console"]);
        let found = Kernel::below(at).unwrap();
        assert_eq!(found.release, "6.1.0-56-cloud-amd64", "made for virtual machines");
        assert_eq!(module_files(&found.modules).len(), 3);
    }
}
