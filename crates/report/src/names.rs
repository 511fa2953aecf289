//! Names of ports and devices, short enough for a table and still different from each other.

use measure::{
    result::RunResult,
    schema::device::DeviceRecord,
    trial::{DirectionCounts, TrialRecord},
};

use crate::text;

/// Characters of a port's name in a column.
const MOST: usize = 20;
/// Characters of a device in the line that names it.
const LINE: usize = 40;

/// The names of ports as one table shows them. The shared beginning and end of long names are left out (`~`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Vec<(String, String)>);

impl Names {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut whole: Vec<&str> = Vec::new();
        for name in names {
            if !whole.contains(&name) {
                whole.push(name);
            }
        }
        let clean: Vec<String> = whole.iter().map(|name| text::clean(name)).collect();
        Self(whole.into_iter().map(str::to_owned).zip(shortened(&clean, MOST)).collect())
    }

    /// Of the directions of one trial.
    pub(crate) fn of_trial(trial: &TrialRecord) -> Self {
        Self::of_directions(&trial.directions)
    }

    /// Of these directions.
    pub(crate) fn of_directions<'a>(directions: impl IntoIterator<Item = &'a DirectionCounts>) -> Self {
        Self::of(directions.into_iter().flat_map(|d| [d.from.as_str(), d.to.as_str()]))
    }

    /// Of pairs of ports.
    pub(crate) fn of_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self::of(pairs.flat_map(|(from, to)| [from, to]))
    }

    fn short(&self, name: &str) -> String {
        let known = self.0.iter().find(|(whole, _)| whole == name);
        known.map_or_else(|| text::clip(&text::clean(name), MOST), |(_, short)| short.clone())
    }

    /// `a -> b`.
    pub(crate) fn pair(&self, from: &str, to: &str) -> String {
        format!("{} -> {}", self.short(from), self.short(to))
    }

    /// The same for a direction.
    pub(crate) fn direction(&self, d: &DirectionCounts) -> String {
        self.pair(&d.from, &d.to)
    }
}

/// The device under test in words: the name the user gave, then what it is.
pub(crate) fn dut(result: &RunResult) -> String {
    match result.dut_name.as_deref().map(text::clean).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({})", text::clean(&result.dut)),
        None => text::clean(&result.dut),
    }
}

/// The same where there is little room: the name the user gave alone, if there is one. Long names of ports have what they
/// share once: `virtio:/run/dut/{0,1}.sock`.
pub(crate) fn dut_short(result: &RunResult) -> String {
    let named = result.dut_name.as_deref().map(text::clean).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| match &result.device {
        DeviceRecord::Ports { names } if result.dut.chars().count() > LINE => {
            braced(&names.iter().map(|name| text::clean(name)).collect::<Vec<_>>())
        }
        _ => text::clean(&result.dut),
    })
}

/// Names as a shell's braces have them: what they share stands once. Joined by arrows where they share little.
fn braced(names: &[String]) -> String {
    let chars: Vec<Vec<char>> = names.iter().map(|name| name.chars().collect()).collect();
    let (prefix, suffix) = ends(&chars);
    let shortest = chars.iter().map(Vec::len).min().unwrap_or(0);
    if names.len() < 2 || (prefix + suffix) * 2 < shortest || prefix + suffix == shortest {
        return names.join(" <-> ");
    }
    let of = |range: std::ops::Range<usize>, name: &Vec<char>| name.get(range).unwrap_or_default().iter().collect();
    let middles: Vec<String> = chars.iter().map(|name| of(prefix..name.len() - suffix, name)).collect();
    let first = chars.first().cloned().unwrap_or_default();
    let (front, back): (String, String) = (of(0..prefix, &first), of(first.len() - suffix..first.len(), &first));
    format!("{front}{{{}}}{back}", middles.join(","))
}

/// Different names, each of at most `most` characters (20 or so): long ones without what they share.
fn shortened(names: &[String], most: usize) -> Vec<String> {
    if names.iter().all(|name| name.chars().count() <= most) {
        return names.to_vec();
    }
    let chars: Vec<Vec<char>> = names.iter().map(|name| name.chars().collect()).collect();
    let (prefix, suffix) = ends(&chars);
    // Where a path or a list goes on, if what is left then still has room.
    let boundary = |name: &[char]| {
        name.iter()
            .take(prefix)
            .rposition(|c| matches!(c, '/' | ':' | ',' | '='))
            .map_or(0, |at| at + usize::from(name.get(at) != Some(&'/')))
    };
    let cut = |from_boundary: bool, suffix: usize| {
        let one = |name: &Vec<char>| {
            let from = if from_boundary { boundary(name) } else { prefix };
            let kept = name.get(from..name.len().saturating_sub(suffix)).unwrap_or_default();
            let (front, back) = (if from > 0 { "~" } else { "" }, if suffix > 0 { "~" } else { "" });
            format!("{front}{}{back}", kept.iter().collect::<String>())
        };
        chars.iter().map(one).collect::<Vec<String>>()
    };
    let tries = [cut(true, 0), cut(true, suffix), cut(false, 0), cut(false, suffix)];
    let fits = |names: &Vec<String>| names.iter().all(|name| name.chars().count() <= most && name != "~");
    let best = tries.iter().find(|names| names.len() > 1 && fits(names));
    if let Some(names) = best {
        return names.clone();
    }
    // One long name, or names that differ over a long way: the end of a path says more than its beginning.
    let last = if names.len() > 1 { cut(false, suffix) } else { names.to_vec() };
    let tail = |name: &String| match name.chars().count() {
        n if n <= most => name.clone(),
        n => format!("~{}", name.chars().skip(n + 1 - most).collect::<String>()),
    };
    let head = |name: &String| text::clip(name, most);
    let (tails, heads): (Vec<String>, Vec<String>) = (last.iter().map(tail).collect(), last.iter().map(head).collect());
    if different(&tails) {
        tails
    } else if different(&heads) {
        heads
    } else {
        let numbered = |(i, name): (usize, &String)| format!("{}#{}", text::clip(name, most.saturating_sub(4)), i + 1);
        last.iter().enumerate().map(numbered).collect()
    }
}

/// How many characters all names share at their begin, and behind that at their end.
fn ends(names: &[Vec<char>]) -> (usize, usize) {
    let prefix = shared(names, |name, i| name.get(i).copied());
    let shortest = names.iter().map(Vec::len).min().unwrap_or(0);
    let end = |name: &Vec<char>, i: usize| name.len().checked_sub(i + 1).and_then(|at| name.get(at).copied());
    (prefix, shared(names, end).min(shortest.saturating_sub(prefix)))
}

/// How many characters all names share, taken from one end.
fn shared(names: &[Vec<char>], at: impl Fn(&Vec<char>, usize) -> Option<char>) -> usize {
    let Some(first) = names.first() else { return 0 };
    (0..first.len()).take_while(|&i| names.iter().all(|name| at(name, i) == at(first, i))).count()
}

fn different(names: &[String]) -> bool {
    names.iter().enumerate().all(|(i, name)| !names.iter().take(i).any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(names: &[&str]) -> Vec<String> {
        shortened(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>(), MOST)
    }

    #[test]
    fn what_is_equal_is_cut_and_what_differs_stays() {
        assert_eq!(of(&["wire:a", "wire:b"]), ["wire:a", "wire:b"]);
        assert_eq!(
            of(&["virtio:/run/dut/port-a.sock", "virtio:/run/dut/port-b.sock"]),
            ["~/port-a.sock", "~/port-b.sock"]
        );
        assert_eq!(
            of(&["virtio:/run/dut/a/a-very-long-name.sock", "virtio:/run/dut/b/a-very-long-name.sock"]),
            ["~/a~", "~/b~"]
        );
        assert_eq!(of(&["memif:/run/a-name-without-end-0", "memif:/run/a-name-without-end-1"]), ["~0", "~1"]);
        assert_eq!(of(&["pcap:/var/tmp/some/long/capture.pcap"]), ["~e/long/capture.pcap"]);
    }

    #[test]
    fn what_the_ports_of_a_device_share_stands_once() {
        let of = |names: &[&str]| braced(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        let sockets =
            ["virtio:/tmp/ovs/0.sock,server=1,queue_size=1024", "virtio:/tmp/ovs/1.sock,server=1,queue_size=1024"];
        assert_eq!(of(&sockets), "virtio:/tmp/ovs/{0,1}.sock,server=1,queue_size=1024");
        assert_eq!(of(&["memif:/run/dut/x", "memif:/run/dut/yz"]), "memif:/run/dut/{x,yz}");
        assert_eq!(of(&["memif:/run/a.sock", "0000:37:00.0"]), "memif:/run/a.sock <-> 0000:37:00.0");
        assert_eq!(of(&["memif:/run/dut/a", "memif:/run/dut/a1"]), "memif:/run/dut/a <-> memif:/run/dut/a1");
        assert_eq!((of(&["eth:t0"]), of(&[])), ("eth:t0".to_owned(), String::new()));
    }

    proptest! {
        #[test]
        fn different_names_stay_different_and_short(names in prop::collection::hash_set("[a-c/:]{1,40}", 1..5)) {
            let names: Vec<String> = names.into_iter().collect();
            let short = shortened(&names, MOST);
            prop_assert!(short.iter().all(|name| name.chars().count() <= MOST), "{:?}", short);
            prop_assert!(different(&short), "{:?} {:?}", names, short);
        }
    }
}
