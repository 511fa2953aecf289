//! Modules of a guest's kernel, with those that they depend on, in the order in which they are loaded.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use failure::Failure;
use lab::vm::kernel::{module_files, module_name, Kernel, REMEDY};

/// Reads these modules and all that they depend on. What is built into the kernel needs no module.
///
/// # Errors
///
/// (machine) for a module that the kernel has not.
pub(super) fn in_order(kernel: &Kernel, wanted: &[String]) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let files: BTreeMap<String, PathBuf> =
        module_files(&kernel.modules).into_iter().map(|file| (module_name(&file), file)).collect();
    let mut order = Order { kernel, files, built_in: kernel.built_in(), done: Vec::new() };
    for name in wanted {
        order.add(name, 0)?;
    }
    Ok(order.done)
}

/// Deeper than any chain of dependencies.
const DEEPEST: usize = 32;

struct Order<'a> {
    kernel: &'a Kernel,
    files: BTreeMap<String, PathBuf>,
    built_in: Vec<String>,
    done: Vec<(String, Vec<u8>)>,
}

impl Order<'_> {
    fn add(&mut self, name: &str, depth: usize) -> Result<(), Failure> {
        let name = name.replace('-', "_");
        if self.built_in.contains(&name) || self.done.iter().any(|(done, _)| *done == name) || depth > DEEPEST {
            return Ok(());
        }
        let file = self.files.get(&name).ok_or_else(|| {
            Failure::machine(format!("kernel {}: has no module {name}: {}", self.kernel.release, REMEDY))
        })?;
        let bytes = read(file)?;
        for needed in depends(&bytes) {
            self.add(&needed, depth + 1)?;
        }
        self.done.push((name, bytes));
        Ok(())
    }
}

/// A module's bytes; some distributions compress them.
fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let unpack = match file.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(file).map_err(|e| Failure::machine(format!("{}: {e}", file.display()))),
    };
    let out = Command::new(unpack)
        .arg("-dc")
        .arg(file)
        .output()
        .map_err(|e| Failure::machine(format!("cannot run {unpack}, for {}: {e}", file.display())))?;
    match out.status.success() {
        true => Ok(out.stdout),
        false => Err(Failure::machine(format!(
            "{}: {unpack}: {}",
            file.display(),
            String::from_utf8_lossy(&out.stderr).trim()
        ))),
    }
}

/// The modules that a module names as needed: `depends=a,b` among its texts (`modinfo`).
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let rest = module.get(at + KEY.len()..).unwrap_or_default();
    let text = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(root: &Path, modules: &[(&str, &str)]) -> Kernel {
        let dir = root.join("kernel");
        fs::create_dir_all(&dir).unwrap();
        for (name, depends) in modules {
            fs::write(dir.join(format!("{name}.ko")), format!("license=GPL\0depends={depends}\0name={name}\0"))
                .unwrap();
        }
        fs::write(root.join("modules.builtin"), "kernel/lib/crc32c.ko\n").unwrap();
        Kernel { release: "6.1".into(), image: root.into(), modules: root.into() }
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it_once() {
        let root = tempfile::tempdir().unwrap();
        let modules =
            [("bridge", "stp,llc,crc32c"), ("stp", "llc"), ("llc", ""), ("virtio-net", "llc"), ("a", "b"), ("b", "a")];
        let kernel = kernel(root.path(), &modules);
        let names = |wanted: &[&str]| -> Vec<String> {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            in_order(&kernel, &wanted).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&["bridge", "virtio_net", "crc32c"]), ["llc", "stp", "bridge", "virtio_net"]);
        assert!(names(&["a"]).contains(&"b".to_owned()), "modules that need each other end");
        assert_eq!(in_order(&kernel, &["nothing".to_owned()]).unwrap_err().exit, failure::Exit::Machine);
    }
}
