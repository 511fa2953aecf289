//! Links, followed by names only.

use std::path::{Component, Path, PathBuf};

/// Where a link leads that stands at a path, by names only.
pub(crate) fn beside(path: &Path, target: &Path) -> PathBuf {
    let parent = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut at = if target.is_absolute() { PathBuf::new() } else { parent };
    for part in target.components() {
        match part {
            Component::ParentDir => {
                at.pop();
            }
            Component::CurDir => {}
            other => at.push(other),
        }
    }
    at
}
