//! Where ended flows go, from what was typed.

use std::{path::Path, time::Duration};

use flow::export::{FileSpec, SinkSpec};

use crate::failure::Failure;

/// `udp://HOST:PORT` or `tcp://HOST:PORT`.
pub fn collector(text: &str) -> Result<SinkSpec, Failure> {
    let sink = text.split_once("://").filter(|(kind, _)| matches!(*kind, "udp" | "tcp"));
    let sink = sink.and_then(|(kind, to)| format!("{kind}:{to}").parse().ok());
    sink.ok_or_else(|| {
        Failure::usage(format!(
            "ipfix {text:?}: must be udp://HOST:PORT or tcp://HOST:PORT, an IPv6 address in brackets"
        ))
    })
}

/// `FILE[,rotate=SIZE|TIME][,keep=N]`; `rotate` may be there twice, for both.
pub fn file(text: &str) -> Result<SinkSpec, Failure> {
    let at = |why: String| Failure::usage(format!("json {text:?}: {why}"));
    let mut parts = text.split(',');
    let path = Path::new(parts.next().unwrap_or_default());
    if path.as_os_str().is_empty() || path.is_dir() {
        return Err(at("must be FILE[,rotate=100M|1h][,keep=8]".into()));
    }
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(at(format!("there is no directory {0}: mkdir -p {0}", parent.display())));
    }
    let mut spec = FileSpec::new(path);
    for part in parts {
        match part.split_once('=') {
            Some(("rotate", value)) => match size(value) {
                Some(bytes) => spec.max_bytes = bytes,
                None => {
                    spec.max_age = age(value).ok_or_else(|| {
                        at(format!("rotate={value}: must be a size, 64k to 1T, or a time, 1s to 365d"))
                    })?
                }
            },
            Some(("keep", value)) => {
                let keep = value.parse().ok().filter(|n| *n <= 10_000);
                spec.keep = keep.ok_or_else(|| at(format!("keep={value}: must be 0 to 10000 files")))?;
            }
            _ => return Err(at(format!("{part:?}: must be rotate=SIZE, rotate=TIME or keep=N"))),
        }
    }
    Ok(SinkSpec::Json(spec))
}

fn age(text: &str) -> Option<Duration> {
    let legal = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);
    // A bare number might be meant as a size.
    let unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    units::parse_duration(text).ok().filter(|age| unit && legal.contains(age))
}

/// `100M`: bytes, in powers of 1024.
fn size(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()? {
        b'k' | b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        b'T' => 40,
        _ => return None,
    };
    let bytes = text.get(..text.len() - 1)?.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (64 << 10..=1 << 40).contains(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_urls() {
        assert_eq!(collector("udp://127.0.0.1:4739").unwrap(), SinkSpec::Udp("127.0.0.1:4739".into()));
        assert_eq!(collector("tcp://[::1]:4739").unwrap(), SinkSpec::Tcp("[::1]:4739".into()));
        for bad in ["127.0.0.1:4739", "udp:127.0.0.1:4739", "sctp://a:1", "udp://a", "json:///tmp/x", ""] {
            assert!(collector(bad).unwrap_err().text.contains("udp://HOST:PORT"), "{bad}");
        }
    }

    #[test]
    fn files_rotate_by_size_or_age() {
        let spec = |text: &str| match file(text).unwrap() {
            SinkSpec::Json(file) => (file.max_bytes, file.max_age.as_secs(), file.keep),
            other => panic!("{other}"),
        };
        let (bytes, age, keep) = spec("f.jsonl");
        assert_eq!(spec("f.jsonl,rotate=100M,keep=3"), (100 << 20, age, 3));
        assert_eq!(spec("f.jsonl,rotate=1h"), (bytes, 3600, keep));
        assert_eq!(spec("f.jsonl,rotate=1G,rotate=30m,keep=0"), (1 << 30, 1800, 0));
        for (bad, want) in [
            ("", "FILE[,rotate="),
            ("/", "FILE[,rotate="),
            ("/no/where/f", "mkdir -p /no/where"),
            ("f,rotate=1", "rotate=1"),
            ("f,rotate=10k", "64k to 1T"),
            ("f,keep=-1", "keep=-1"),
            ("f,what", "\"what\""),
        ] {
            let text = file(bad).unwrap_err().text;
            assert!(text.contains(want), "{text}");
        }
    }
}
