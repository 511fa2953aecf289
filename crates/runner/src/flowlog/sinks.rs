//! The text forms of collectors and files.

use std::{collections::BTreeSet, path::Path, time::Duration};

use failure::Failure;
use flow::export::{FileSpec, SinkSpec, TcpSpec, TlsSinkSpec, Transport, UdpSpec};
use net::{TlsSpec, TlsTrust};

use super::own_output::is_own_output;

/// Slowest and fastest pace, in records a second.
const RATES: std::ops::RangeInclusive<f64> = 100.0..=100e6;

/// Sizes of UDP messages: what the templates need, and what a datagram holds.
const MESSAGES: std::ops::RangeInclusive<usize> = 1200..=65_507;

/// `udp://HOST:PORT[,rate=RECORDS][,refresh=TIME][,mtu=BYTES]`, `tcp://HOST:PORT`,
/// `sctp://HOST:PORT`, or `tls://HOST:PORT,ca=FILE[,name=NAME][,cert=FILE,key=FILE]`.
pub fn collector(text: &str) -> Result<SinkSpec, Failure> {
    let at = |why: &str| Failure::usage(format!("ipfix {text:?}: {why}"));
    let (url, options) = text.split_once(',').map_or((text, None), |(url, options)| (url, Some(options)));
    if let Some(to) = url.strip_prefix("tls://") {
        return tls(to, options.unwrap_or_default()).map_err(|why| at(&why));
    }
    let sink = url.split_once("://").filter(|(kind, _)| matches!(*kind, "udp" | "tcp" | "sctp"));
    let sink = sink.and_then(|(kind, to)| format!("{kind}:{to}").parse().ok());
    let form = "udp://HOST:PORT[,rate=200k][,refresh=60s][,mtu=1500][,names=on][,flags=9], tcp://HOST:PORT, sctp://HOST:PORT or \
                tls://HOST:PORT,ca=FILE";
    let wrong = || at(&format!("{}: must be {form}", what_is_wrong(url, &["udp", "tcp", "sctp", "tls"])));
    match (sink.ok_or_else(wrong)?, options) {
        (sink, None) => Ok(sink),
        (SinkSpec::Udp(to), Some(options)) => {
            options.split(',').try_fold(to, udp_option).map(SinkSpec::Udp).map_err(at)
        }
        (_, Some(_)) => Err(at("rate, refresh, mtu, names and flags are for udp:// only")),
    }
}

/// What of an address of a collector is not as it must be.
fn what_is_wrong(url: &str, transports: &[&str]) -> String {
    let Some((kind, to)) = url.split_once("://") else {
        let of = transports.iter().find_map(|kind| Some((kind, url.strip_prefix(kind)?.strip_prefix(':')?)));
        let (kind, to) = of.map_or((&transports[0], url), |(kind, to)| (kind, to));
        return format!("write {kind}://{}", if to.is_empty() { "HOST:PORT" } else { to });
    };
    if !transports.contains(&kind) {
        return format!("{kind}:// is not offered");
    }
    let is_bare_v6 = |host: &str| host.contains(':') && !host.starts_with('[');
    match to.rsplit_once(':') {
        _ if to.ends_with(']') => "the port is missing".to_owned(),
        None => "the port is missing".to_owned(),
        Some(("", _)) => "the host is missing".to_owned(),
        Some((host, _)) if is_bare_v6(host) => "an IPv6 address goes in brackets".to_owned(),
        Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => format!("{to:?} is not an address"),
        Some((_, port)) => format!("port {port:?} must be 1 to 65535"),
    }
}

/// A collector over TLS; its files are read.
fn tls(address: &str, options: &str) -> Result<SinkSpec, String> {
    let Ok(SinkSpec::Tcp(to)) = format!("tcp:{address}").parse() else {
        let wrong = what_is_wrong(&format!("tls://{address}"), &["tls"]);
        return Err(format!("{wrong}: must be tls://HOST:PORT,ca=FILE[,name=NAME][,cert=FILE,key=FILE]"));
    };
    let [mut ca, mut name, mut cert, mut key] = [None; 4];
    for option in options.split(',').filter(|_| !options.is_empty()) {
        match option.split_once('=').filter(|(_, value)| !value.is_empty()) {
            Some(("ca", value)) => ca = Some(value),
            Some(("name", value)) => name = Some(value),
            Some(("cert", value)) => cert = Some(value),
            Some(("key", value)) => key = Some(value),
            _ => return Err(format!("{option:?}: options must be ca=FILE, name=NAME, cert=FILE or key=FILE")),
        }
    }
    let trust = ca.map(|ca| TlsTrust { ca: ca.into(), name: name.map(str::to_owned) });
    let own = match (cert, key) {
        (Some(cert), Some(key)) => Some(TlsSpec { cert: cert.into(), key: key.into() }),
        (None, None) => None,
        _ => return Err("cert and key go together: give both, or none".into()),
    };
    let trust = trust.ok_or("ca=FILE is missing: the certificate of the authority that signed the collector's")?;
    let to = TcpSpec { tls: Some(TlsSinkSpec { trust, own }), ..to };
    to.check().map_err(|error| error.to_string())?;
    Ok(SinkSpec::Tcp(to))
}

/// `udp://HOST:PORT[,rate=RECORDS][,refresh=TIME][,mtu=BYTES]`: NetFlow v9 has no TCP.
pub fn netflow9(text: &str) -> Result<SinkSpec, Failure> {
    let at = |why: &str| Failure::usage(format!("netflow9 {text:?}: {why}"));
    let (url, options) = text.split_once(',').map_or((text, None), |(url, options)| (url, Some(options)));
    let to = url.strip_prefix("udp://").and_then(|to| format!("netflow9:{to}").parse().ok());
    let Some(SinkSpec::Udp(to)) = to else {
        let wrong = what_is_wrong(url, &["udp"]);
        return Err(at(&format!("{wrong}: must be udp://HOST:PORT[,rate=200k][,refresh=60s][,mtu=1500][,names=on]")));
    };
    let option = |to, option: &str| match option.split_once('=') {
        Some(("flags", "9")) => Err("NetFlow v9 has eight TCP flags: flags=9 is for --ipfix"),
        _ => udp_option(to, option),
    };
    options.into_iter().flat_map(|options| options.split(',')).try_fold(to, option).map(SinkSpec::Udp).map_err(at)
}

/// Applies one option; the error says what is legal.
fn udp_option(to: UdpSpec, option: &str) -> Result<UdpSpec, &'static str> {
    match option.split_once('=') {
        Some(("rate", value)) => {
            let legal = "rate must be 100 to 100M records a second, such as 200k, or unlimited";
            Ok(UdpSpec { records_per_s: pace(value).ok_or(legal)?, ..to })
        }
        Some(("refresh", value)) => {
            let times = Duration::from_secs(1)..=Duration::from_secs(86_400);
            let every = units::parse_duration(value).ok().filter(|every| times.contains(every));
            Ok(UdpSpec { refresh: Some(every.ok_or("refresh must be a time, 1s to 1d, such as 60s")?), ..to })
        }
        Some(("mtu", value)) => {
            let headers = if to.address.starts_with('[') { 48 } else { 28 };
            let bytes = value.parse::<usize>().ok().and_then(|mtu| mtu.checked_sub(headers));
            let bytes = bytes.filter(|bytes| MESSAGES.contains(bytes));
            let legal = "mtu must be the path's largest IP packet in bytes, 1248 to 65535, such as 1500";
            Ok(UdpSpec { message_bytes: Some(bytes.ok_or(legal)?), ..to })
        }
        Some(("names", "on")) => Ok(UdpSpec { names: true, ..to }),
        Some(("names", "off")) => Ok(UdpSpec { names: false, ..to }),
        Some(("flags", "9")) => Ok(UdpSpec { short_flags: false, ..to }),
        Some(("flags", "8")) => Ok(UdpSpec { short_flags: true, ..to }),
        _ => Err("options must be rate=RECORDS, refresh=TIME, mtu=BYTES, names=on|off or flags=8|9"),
    }
}

fn pace(text: &str) -> Option<Option<u64>> {
    if text == "unlimited" {
        return Some(None);
    }
    let (value, _) = units::parse_si(text).filter(|(value, unit)| unit.is_empty() && RATES.contains(value))?;
    Some(Some(value.round() as u64))
}

/// `FILE[,rotate=SIZE|TIME][,keep=N]`; `rotate` may be there twice, for both.
pub fn file(text: &str) -> Result<SinkSpec, Failure> {
    let at = |why: String| Failure::usage(format!("json {text:?}: {why}"));
    let mut parts = text.split(',');
    let path = Path::new(parts.next().unwrap_or_default());
    let form = "must be FILE[,rotate=100M|1h][,keep=8]";
    if path.is_dir() || text.split(',').next().is_some_and(|name| name.ends_with('/')) {
        return Err(at(format!("{} is a directory: {form}", path.display())));
    }
    if path.as_os_str().is_empty() || path == Path::new("-") || is_own_output(path) {
        return Err(at(format!("{form}; records cannot be written to standard output or standard error")));
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
    spec.check().map_err(|e| at(e.to_string()))?;
    Ok(SinkSpec::Json(spec))
}

/// Refuses a sink given twice: it would get every record twice.
pub fn once_each(sinks: Vec<SinkSpec>) -> Result<Vec<SinkSpec>, Failure> {
    let place = |sink: &SinkSpec| match sink {
        // The directory is there; the file may not be.
        SinkSpec::Json(file) => {
            let parent = file.path.parent().and_then(|dir| dir.join(".").canonicalize().ok()).unwrap_or_default();
            format!("json:{}", parent.join(file.path.file_name().unwrap_or_default()).display())
        }
        other => other.to_string(),
    };
    let mut seen = BTreeSet::new();
    match sinks.iter().find(|sink| !seen.insert(place(sink))) {
        Some(twice) => Err(Failure::usage(format!("{twice} is given twice: give it once"))),
        None => Ok(sinks),
    }
}

/// Refuses a transport that this kernel has not.
pub fn check_transports(sinks: &[SinkSpec]) -> Result<(), Failure> {
    let sctp = |sink: &&SinkSpec| matches!(sink, SinkSpec::Tcp(to) if to.transport == Transport::Sctp);
    match sinks.iter().find(sctp) {
        Some(sink) => net::has_sctp().map_err(|error| Failure::machine(format!("{sink}: {error}"))),
        None => Ok(()),
    }
}

fn age(text: &str) -> Option<Duration> {
    let legal = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);
    // A number without a unit may be meant as a size.
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
    use failure::Exit;

    use super::*;

    #[test]
    fn collectors_are_urls() {
        assert_eq!(collector("udp://127.0.0.1:4739").unwrap(), SinkSpec::Udp(UdpSpec::new("127.0.0.1:4739")));
        assert_eq!(collector("tcp://[::1]:4739").unwrap(), SinkSpec::Tcp(TcpSpec::new("[::1]:4739")));
        let sctp = collector("sctp://a:1").unwrap();
        assert_eq!((sctp.to_string(), "sctp:a:1".parse()), ("sctp:a:1".to_owned(), Ok(sctp)));
        for bad in ["127.0.0.1:4739", "udp:127.0.0.1:4739", "dccp://a:1", "sctp://a", "udp://a", "json:///tmp/x", ""] {
            assert_eq!(collector(bad).unwrap_err().exit, Exit::Usage, "{bad}");
        }
        let wrong = [
            "udp://a",
            "udp://a:99950",
            "udp://:1",
            "udp://::1:4739",
            "udp://[::1]",
            "udp:a:1",
            "a:1",
            "http://a:1",
            "",
        ];
        let said = wrong.map(|url| what_is_wrong(url, &["udp", "tcp"])).join("\n");
        insta::assert_snapshot!(said, @r#"
        the port is missing
        port "99950" must be 1 to 65535
        the host is missing
        an IPv6 address goes in brackets
        the port is missing
        write udp://a:1
        write udp://a:1
        http:// is not offered
        write udp://HOST:PORT
        "#);
        insta::assert_snapshot!(collector("udp://a").unwrap_err(), @r#"ipfix "udp://a": the port is missing: must be udp://HOST:PORT[,rate=200k][,refresh=60s][,mtu=1500][,names=on][,flags=9], tcp://HOST:PORT, sctp://HOST:PORT or tls://HOST:PORT,ca=FILE"#);
        assert_eq!(netflow9("udp://a:1,flags=9").unwrap_err().exit, Exit::Usage);
        assert!(netflow9("udp://a:1,flags=8").is_ok());
    }

    #[test]
    fn udp_has_a_pace() {
        let rate = |text: &str| match collector(text).unwrap() {
            SinkSpec::Udp(to) => (to.address, to.records_per_s),
            other => panic!("{other}"),
        };
        let to = |rate| ("[::1]:4739".to_owned(), rate);
        assert_eq!(rate("udp://[::1]:4739"), to(Some(200_000)));
        assert_eq!(rate("udp://[::1]:4739,rate=1.5M"), to(Some(1_500_000)));
        assert_eq!(rate("udp://[::1]:4739,rate=unlimited"), to(None));
        let bad = [
            "udp://a:1,rate=0",
            "udp://a:1,rate=200kpps",
            "udp://a:1,rate=1G",
            "udp://a:1,rate=",
            "udp://a:1,refresh=0s",
            "udp://a:1,mtu=600",
            "udp://a:1,mtu=65536",
            "udp://a:1,pace=1k",
            "udp://a:1,",
            "tcp://a:1,rate=1k",
            "sctp://a:1,ca=x",
        ];
        insta::assert_snapshot!(bad.map(|text| collector(text).unwrap_err().text).join("\n"), @r#"
        ipfix "udp://a:1,rate=0": rate must be 100 to 100M records a second, such as 200k, or unlimited
        ipfix "udp://a:1,rate=200kpps": rate must be 100 to 100M records a second, such as 200k, or unlimited
        ipfix "udp://a:1,rate=1G": rate must be 100 to 100M records a second, such as 200k, or unlimited
        ipfix "udp://a:1,rate=": rate must be 100 to 100M records a second, such as 200k, or unlimited
        ipfix "udp://a:1,refresh=0s": refresh must be a time, 1s to 1d, such as 60s
        ipfix "udp://a:1,mtu=600": mtu must be the path's largest IP packet in bytes, 1248 to 65535, such as 1500
        ipfix "udp://a:1,mtu=65536": mtu must be the path's largest IP packet in bytes, 1248 to 65535, such as 1500
        ipfix "udp://a:1,pace=1k": options must be rate=RECORDS, refresh=TIME, mtu=BYTES, names=on|off or flags=8|9
        ipfix "udp://a:1,": options must be rate=RECORDS, refresh=TIME, mtu=BYTES, names=on|off or flags=8|9
        ipfix "tcp://a:1,rate=1k": rate, refresh, mtu, names and flags are for udp:// only
        ipfix "sctp://a:1,ca=x": rate, refresh, mtu, names and flags are for udp:// only
        "#);
    }

    #[test]
    fn udp_has_a_message_size_and_an_interval_of_templates() {
        let options = |text: &str| match collector(text).unwrap() {
            SinkSpec::Udp(to) => (to.records_per_s, to.message_bytes, to.refresh.map(|every| every.as_secs())),
            other => panic!("{other}"),
        };
        assert_eq!(options("udp://a:1,refresh=10s,mtu=1500,rate=1k"), (Some(1000), Some(1472), Some(10)));
        assert_eq!(options("udp://[::1]:1,mtu=9000"), (Some(200_000), Some(8952), None));
        assert_eq!(options("udp://a:1"), (Some(200_000), None, None));
    }

    #[test]
    fn a_sink_is_given_once() {
        let all = |texts: &[&str]| once_each(texts.iter().map(|text| text.parse().unwrap()).collect());
        assert_eq!(all(&["udp:a:1", "udp:a:2", "tcp:a:1", "json:f", "json:g"]).unwrap().len(), 5);
        for twice in [["udp:a:1", "udp:a:1"], ["json:f", "json:./f"], ["json:/tmp/f", "json:/tmp/../tmp/f"]] {
            assert_eq!(all(&twice).unwrap_err().exit, Exit::Usage, "{twice:?}");
        }
        insta::assert_snapshot!(all(&["udp:a:1", "udp:a:1"]).unwrap_err(), @"udp:a:1 is given twice: give it once");
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let path = std::env::temp_dir().join(format!("linerate-sinks-{}", std::process::id()));
        let text = path.display().to_string();
        for (content, legal) in [("", true), ("{\"src\":\"::\"}\n{\"sr", true), ("a capture", false)] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(file(&text).is_ok(), legal, "{content}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        std::fs::remove_file(&path).unwrap();
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
        let bad = ["", "/", "new/", "-", "/no/where/f", "f,rotate=1", "f,rotate=10k", "f,keep=-1", "f,what"];
        insta::assert_snapshot!(bad.map(|text| file(text).unwrap_err().text).join("\n"), @r#"
        json "": must be FILE[,rotate=100M|1h][,keep=8]; records cannot be written to standard output or standard error
        json "/": / is a directory: must be FILE[,rotate=100M|1h][,keep=8]
        json "new/": new/ is a directory: must be FILE[,rotate=100M|1h][,keep=8]
        json "-": must be FILE[,rotate=100M|1h][,keep=8]; records cannot be written to standard output or standard error
        json "/no/where/f": there is no directory /no/where: mkdir -p /no/where
        json "f,rotate=1": rotate=1: must be a size, 64k to 1T, or a time, 1s to 365d
        json "f,rotate=10k": rotate=10k: must be a size, 64k to 1T, or a time, 1s to 365d
        json "f,keep=-1": keep=-1: must be 0 to 10000 files
        json "f,what": "what": must be rotate=SIZE, rotate=TIME or keep=N
        "#);
    }
}
