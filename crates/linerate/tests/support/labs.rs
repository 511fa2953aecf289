//! Labs of tests: one at a time, ended when the test ends.

use super::tester::{linerate, Ended};

/// Ends every lab when a test ends, also when it fails.
pub struct EndOfLabs;

impl Drop for EndOfLabs {
    fn drop(&mut self) {
        let _ = linerate(&["lab", "down", "--all"]);
    }
}

/// A command that has to succeed.
#[track_caller]
pub fn does(args: &[&str]) -> Ended {
    let done = linerate(args);
    assert_eq!(done.code, 0, "{args:?}: {}{}", done.stdout, done.stderr);
    done
}
