//! Paths on this machine and in an image.

use std::path::{Path, PathBuf};

/// Where a file of this machine is in an image: everything is below `/usr`, to which the old directories are links.
pub(super) fn in_image(path: &Path) -> String {
    let text = path.to_string_lossy().into_owned();
    let old = ["/bin/", "/sbin/", "/lib/", "/lib64/"].iter().any(|dir| text.starts_with(dir));
    if old {
        format!("/usr{text}")
    } else {
        text
    }
}

/// Whether two paths are one file in an image.
pub(super) fn same_in_image(a: &Path, b: &Path) -> bool {
    in_image(a) == in_image(b)
}

/// The first directory of PATH with this program.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path =
        std::env::var("PATH").unwrap_or_default() + ":/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
    path.split(':').map(|dir| Path::new(dir).join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_directories_are_links_below_usr() {
        let of = |path: &str| in_image(Path::new(path));
        assert_eq!(
            (of("/lib/x/libm.so"), of("/usr/lib/x/libm.so")),
            ("/usr/lib/x/libm.so".into(), "/usr/lib/x/libm.so".into())
        );
        assert_eq!((of("/lib64/ld.so"), of("/opt/lib/a")), ("/usr/lib64/ld.so".to_owned(), "/opt/lib/a".to_owned()));
        assert!(same_in_image(Path::new("/bin/sh"), Path::new("/usr/bin/sh")));
        assert_eq!(on_path("no-such-program"), None);
        assert_eq!((on_path("/bin/sh").is_some(), on_path("sh").is_some(), on_path("/bin")), (true, true, None));
    }
}
