//! Other programs that are asked for facts.

use std::{
    io::Read,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::fact::Fact;

/// Longest that a program may take.
const DEADLINE: Duration = Duration::from_secs(3);
/// Most bytes that are read of what it prints.
const MAX_BYTES: u64 = 1 << 20;

/// What a program prints; absent if there is none of this name or it fails, unreadable if it does not end.
pub(crate) fn printed(program: &str, args: &[&str]) -> Fact<String> {
    let started = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return Fact::Absent };
    let Some(out) = child.stdout.take() else { return Fact::Absent };
    // A thread of its own: a program that is stopped may leave a child with the pipe.
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = out.take(MAX_BYTES).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let end = Instant::now() + DEADLINE;
    let ended = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
            Ok(Some(status)) => break Some(status),
            _ => break None,
        }
    };
    if ended.is_none() {
        let _ = child.kill();
        let _ = child.wait();
        return Fact::Unreadable(format!("{program} did not end within {} s", DEADLINE.as_secs()));
    }
    match (ended.is_some_and(|status| status.success()), reader.join()) {
        (true, Ok(text)) => Fact::Known(text),
        _ => Fact::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_and_never_waited_for_for_long() {
        assert_eq!(printed("echo", &["a", "b"]), Fact::Known("a b\n".to_owned()));
        assert_eq!(printed("false", &[]), Fact::Absent);
        assert_eq!(printed("/no/such/program", &[]), Fact::Absent);
        assert!(matches!(printed("sleep", &["60"]), Fact::Unreadable(_)));
    }
}
