//! `[sweep]`: keys of a plan that take several values; the plan is run once for each combination of them.

use std::{fmt, ops::RangeInclusive, str::FromStr, time::Duration};

use serde::{de, ser::SerializeMap, Deserialize, Deserializer, Serialize, Serializer};

use super::{
    error::PlanError,
    limits::{span, CORES, FLOWS, FRAME_BYTES, ROUTES, SHORTEST_TRIAL},
};
pub use crate::schema::sweep::{Point, SweepKey};
use crate::schema::text;

/// Most points of a sweep.
pub const MAX_POINTS: usize = 64;
/// How long the command between points may take by default.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

impl SweepKey {
    /// The legal values.
    fn range(self) -> RangeInclusive<u64> {
        match self {
            Self::Cores | Self::Queues => CORES,
            Self::Routes => ROUTES,
            Self::Flows => FLOWS,
            Self::FrameSizes => FRAME_BYTES,
        }
    }

    /// A whole number of it in its range: `1000`, `64k`, `1M`.
    fn value(self, given: &str) -> Result<u64, PlanError> {
        let (low, high) = self.range().into_inner();
        if self == Self::FrameSizes && given.trim().starts_with("imix") {
            let legal = format!(
                "mixes are not swept: must be whole numbers of {low} to {high}; a mix gets a row of its own without a \
                 sweep over frame sizes: --frame-sizes 64,imix, in a plan frame_sizes = [64, \"imix\"]"
            );
            return Err(PlanError::value(format!("sweep.{self}"), format!("{given:?}"), legal));
        }
        let value = match units::parse_si(given) {
            Some((value, "")) if value.fract() == 0.0 && (low as f64..=high as f64).contains(&value) => value as u64,
            _ => {
                let legal = format!("must be whole numbers of {low} to {high}, like 1000, 64k or 1M");
                return Err(PlanError::value(format!("sweep.{self}"), format!("{given:?}"), legal));
            }
        };
        Ok(value)
    }
}

impl FromStr for SweepKey {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let name = text.trim().replace('-', "_");
        Self::ALL.into_iter().find(|key| key.name() == name).ok_or_else(|| {
            let legal = "cannot be swept: must be flows, frame-sizes, cores, queues or routes, like flows=1,1k,64k";
            PlanError::value("sweep", format!("{text:?}"), legal)
        })
    }
}

/// A key and the values it takes in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The key.
    pub key: SweepKey,
    /// Its values, as given; none twice.
    pub values: Vec<u64>,
}

impl Axis {
    fn new<'a>(key: SweepKey, given: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError> {
        let mut values = Vec::new();
        for text in given {
            let value = key.value(text)?;
            if values.contains(&value) {
                return Err(PlanError::value(format!("sweep.{key}"), text, "is listed twice"));
            }
            values.push(value);
        }
        match values.len() {
            1..=MAX_POINTS => Ok(Self { key, values }),
            n => {
                let legal = format!("must list 1 to {MAX_POINTS} values");
                Err(PlanError::value(format!("sweep.{key}"), format!("{n} values"), legal))
            }
        }
    }
}

impl FromStr for Axis {
    type Err = PlanError;

    /// `flows=1,1k,64k`
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let (key, values) = text.split_once('=').unwrap_or((text, ""));
        let values = values.trim();
        Self::new(key.parse()?, values.split(',').filter(|_| !values.is_empty()))
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values.iter().map(u64::to_string).collect();
        write!(f, "{} {}", self.key, values.join(", "))
    }
}

/// The section; without axes there is no sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepPlan {
    /// Keys and their values; the last one varies fastest.
    pub axes: Vec<Axis>,
    /// What brings the device to a point before it is measured: a program and its arguments, `{cores}` and the like in
    /// them replaced. It is what makes an outside device have so many cores.
    pub command: Vec<String>,
    /// How long it may take.
    pub command_timeout: Duration,
}

impl Default for SweepPlan {
    fn default() -> Self {
        Self { axes: Vec::new(), command: Vec::new(), command_timeout: COMMAND_TIMEOUT }
    }
}

impl SweepPlan {
    /// Whether there is nothing to sweep over.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// The keys, in order.
    pub fn keys(&self) -> Vec<SweepKey> {
        self.axes.iter().map(|axis| axis.key).collect()
    }

    /// Axes over these: of the same key instead of what there is, others in front. Errors when a key is given twice.
    pub fn over(&mut self, axes: Vec<Axis>) -> Result<(), PlanError> {
        for (i, axis) in axes.iter().enumerate() {
            if axes[..i].iter().any(|other| other.key == axis.key) {
                return Err(PlanError::value("sweep", axis.key, "is given twice: list all of its values once"));
            }
        }
        let mut new = Vec::new();
        for axis in axes {
            match self.axes.iter_mut().find(|old| old.key == axis.key) {
                Some(old) => *old = axis,
                None => new.push(axis),
            }
        }
        self.axes.splice(0..0, new);
        Ok(())
    }

    /// Whether a placeholder of this name is replaced by a point's values.
    fn fills(&self, name: &str) -> bool {
        name.parse().is_ok_and(|key: SweepKey| self.keys().contains(&key))
    }

    /// Every combination of values.
    pub fn points(&self) -> Vec<Point> {
        let start = if self.is_empty() { Vec::new() } else { vec![Point(Vec::new())] };
        self.axes.iter().fold(start, |points, axis| {
            let with = |point: &Point, value| Point([&point.0[..], &[(axis.key, value)]].concat());
            points.iter().flat_map(|point| axis.values.iter().map(|&value| with(point, value))).collect()
        })
    }

    /// The product of the values must be small, and the command one that can be run.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        let count = self.axes.iter().map(|a| a.values.len() as u128).product::<u128>();
        if count > MAX_POINTS as u128 {
            let axes: Vec<_> = self.axes.iter().map(|a| format!("{} of {}", a.values.len(), a.key)).collect();
            let legal = format!("must be at most {MAX_POINTS}: list fewer values ({})", axes.join(" times "));
            return Err(PlanError::value("sweep", format!("{count} points"), legal));
        }
        if self.command.first().is_some_and(|program| program.trim().is_empty()) || self.command.len() > 256 {
            let legal = "must be a program and at most 255 arguments, such as [\"./set-cores\", \"{cores}\"]";
            return Err(PlanError::value("sweep.command", format!("{} words", self.command.len()), legal));
        }
        if self.is_empty() && !self.command.is_empty() {
            let legal = "is run before each point of a sweep, and there is none: name keys, like flows = [1, 1000]";
            return Err(PlanError::value("sweep.command", "(given)", legal));
        }
        if let Some(bad) = self.command.iter().flat_map(|word| placeholders(word)).find(|name| !self.fills(name)) {
            let legal: Vec<_> = self.axes.iter().map(|axis| format!("{{{}}}", axis.key)).collect();
            let legal = format!(
                "is not a key of this sweep, whose placeholders are {} (for a shell write a blank behind the brace)",
                legal.join(" and ")
            );
            return Err(PlanError::value("sweep.command", format!("{{{bad}}}"), legal));
        }
        span("sweep.command_timeout", self.command_timeout, SHORTEST_TRIAL)
    }
}

/// The names in braces: letters, digits, `_` and `-` alone, not behind a `$`, which is the shell's.
fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices('{').filter_map(|(at, _)| {
        let (before, rest) = word.split_at_checked(at)?;
        let (name, _) = rest.strip_prefix('{')?.split_once('}')?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain);
        (is_name && !before.ends_with('$')).then_some(name)
    })
}

impl FromStr for Point {
    type Err = PlanError;

    /// What [`Point::name`] writes.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let one = |part: &str| {
            let (key, value) = part.split_once('-').unwrap_or((part, ""));
            let key: SweepKey = key.parse()?;
            Ok((key, key.value(value)?))
        };
        text.split('.').map(one).collect::<Result<_, _>>().map(Self)
    }
}

/// What may stand in the section.
#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Entry {
    Cores,
    Queues,
    Routes,
    Flows,
    #[serde(alias = "frame-sizes")]
    FrameSizes,
    Command,
    CommandTimeout,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Values(#[serde(deserialize_with = "text::values::deserialize")] Vec<String>);

#[derive(Deserialize)]
#[serde(transparent)]
struct Span(#[serde(deserialize_with = "text::span::deserialize")] Duration);

/// Takes the keys in the order of the file.
struct Section;

impl<'de> de::Visitor<'de> for Section {
    type Value = SweepPlan;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys and lists of their values")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<SweepPlan, A::Error> {
        let mut plan = SweepPlan::default();
        while let Some(entry) = map.next_key()? {
            let key = match entry {
                Entry::Cores => SweepKey::Cores,
                Entry::Queues => SweepKey::Queues,
                Entry::Routes => SweepKey::Routes,
                Entry::Flows => SweepKey::Flows,
                Entry::FrameSizes => SweepKey::FrameSizes,
                Entry::Command => {
                    plan.command = map.next_value()?;
                    continue;
                }
                Entry::CommandTimeout => {
                    plan.command_timeout = map.next_value::<Span>()?.0;
                    continue;
                }
            };
            let Values(given) = map.next_value()?;
            if plan.keys().contains(&key) {
                return Err(de::Error::duplicate_field(key.name()));
            }
            plan.axes.push(Axis::new(key, given.iter().map(String::as_str)).map_err(de::Error::custom)?);
        }
        Ok(plan)
    }
}

impl<'de> Deserialize<'de> for SweepPlan {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(Section)
    }
}

impl Serialize for SweepPlan {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for axis in &self.axes {
            map.serialize_entry(axis.key.name(), &axis.values)?;
        }
        if !self.command.is_empty() {
            map.serialize_entry("command", &self.command)?;
            map.serialize_entry("command_timeout", &text::span_text(self.command_timeout))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn axis(text: &str) -> Result<Axis, PlanError> {
        text.parse()
    }

    #[test]
    fn values_read_as_typed() {
        assert_eq!(axis("flows=1,1k,64k,1M").unwrap().values, [1, 1_000, 64_000, 1_000_000]);
        assert_eq!(axis("frame-sizes=64,9216").unwrap().key, SweepKey::FrameSizes);
        assert_eq!(axis("frame_sizes = 64").unwrap().to_string(), "frame_sizes 64");
        let all = [
            "flows=",
            "flows",
            "",
            "colour=red",
            "flows=0",
            "flows=17M",
            "flows=1,,2",
            "flows=-1",
            "flows=1.5",
            "flows=nan",
            "flows=1e300",
            "flows=1pps",
            "flows=1k,1000",
            "routes=2M",
            "cores=2000",
            "frame-sizes=63",
            "frame-sizes=64,imix",
            "frame_sizes=imix=aaafg",
        ];
        let refused = |text: &str| {
            let error = axis(text).unwrap_err();
            assert!(matches!(&error, PlanError::Value { key, .. } if key.starts_with("sweep")), "{text}: {error:?}");
            error.to_string()
        };
        let many = format!("cores={}", (1..=65).map(|n: u32| n.to_string()).collect::<Vec<_>>().join(","));
        insta::assert_snapshot!(all.map(refused).join("\n") + "\n" + &refused(&many));
    }

    #[test]
    fn points_are_the_product_in_order() {
        let toml = "[sweep]\nflows = [1, '64k']\ncores = [1, 2]\ncommand = ['set', '{cores}']";
        let plan = Plan::from_toml(toml).unwrap().validate().unwrap();
        let names: Vec<_> = plan.sweep.points().iter().map(Point::name).collect();
        assert_eq!(
            names,
            ["flows-1.cores-1", "flows-1.cores-2", "flows-64000.cores-1", "flows-64000.cores-2"],
            "the last key of the file varies fastest"
        );
        let last: Point = names[3].parse().unwrap();
        assert_eq!(
            (last.to_string().as_str(), last.fill("{cores}/{flows}/{x}")),
            ("flows 64000, cores 2", "2/64000/{x}".into())
        );
        let mut at = plan.into_inner();
        last.apply(&mut at);
        assert_eq!(
            (at.traffic.flows, at.dut.cores, at.name.as_str()),
            (64_000, Some(2), "rfc2544:flows-64000.cores-2")
        );
        assert!(at.sweep.is_empty() && SweepPlan::default().points().is_empty());
        assert!("flows-1.colour-2".parse::<Point>().is_err() && "".parse::<Point>().is_err());
    }

    #[test]
    fn a_plan_with_a_sweep_is_printed_and_read_again() {
        // In any order, since the order of the points is that of the keys.
        for keys in ["frame_sizes=64,512 flows=2,1 routes=1k", "routes=1k flows=2,1 cores=1 frame_sizes=64"] {
            let mut plan = Plan::default();
            plan.sweep.over(keys.split(' ').map(|text| axis(text).unwrap()).collect()).unwrap();
            let again = Plan::from_toml(&plan.to_toml().unwrap()).unwrap();
            assert_eq!(again, plan, "{keys}");
        }
        assert!(!Plan::default().to_toml().unwrap().contains("[sweep]"));
    }

    #[test]
    fn what_is_wrong_with_a_sweep_is_said() {
        let refused = |toml: &str| Plan::from_toml(toml).and_then(Plan::validate).unwrap_err();
        let list = |n: u64| (1..=n).collect::<Vec<_>>();
        let many = format!("[sweep]\nflows = {:?}\ncores = {:?}", list(9), list(8));
        let mut errors = Vec::new();
        for (toml, key) in [
            ("[sweep]\ncolour = [1]", None),
            ("[sweep]\nflows = []", None),
            ("[sweep]\nflows = 5", None),
            ("[sweep]\nflows = [true]", None),
            ("[sweep]\nframe_sizes = [64]\nframe-sizes = [128]", None),
            ("sweep = 5", None),
            ("[sweep]\nflows = [0]", None),
            ("[sweep]\ncommand = ['x']", Some("sweep.command")),
            ("[sweep]\nflows = [1]\ncommand = [' ']", Some("sweep.command")),
            ("[sweep]\nflows = [1]\ncommand = ['x', '{foo}']", Some("sweep.command")),
            ("[sweep]\nframe-sizes = [64]\nflows = [1]\ncommand = ['x', 'a{cores}']", Some("sweep.command")),
            ("[sweep]\nflows = [1]\ncommand_timeout = 0", Some("sweep.command_timeout")),
            ("[sweep]\nframe_sizes = [64]\n[traffic]\nvlan = [7, 8]\nmpls = [16]", Some("frame_sizes")),
            ("frame_sizes = [128]\n[sweep]\nroutes = [9]\n[traffic]\nip = 'v6'", Some("dut.routes")),
            (&many, Some("sweep")),
        ] {
            let error = refused(toml);
            match &error {
                PlanError::Value { key: found, .. } => assert_eq!(Some(found.as_str()), key, "{error}"),
                other => assert!(matches!(other, PlanError::Toml { .. }) && key.is_none(), "{error}"),
            }
            errors.push(error.to_string());
        }
        assert!(!errors.iter().any(|error| error.contains('\n')), "{errors:?}");
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn placeholders_are_keys_and_a_shell_has_its_own_braces() {
        let fine = "{frame_sizes}{frame-sizes} ${cores} ${x} { y; } {a,b} {}";
        let toml = format!("[sweep]\nframe-sizes = [64]\ncommand = ['sh', '-c', '{fine}']");
        let plan = Plan::from_toml(&toml).unwrap().validate().unwrap();
        assert_eq!(plan.sweep.points()[0].fill(fine), "6464 ${cores} ${x} { y; } {a,b} {}");
        let names: Vec<_> = placeholders("{a}{b-c} {d").collect();
        assert_eq!(names, ["a", "b-c"]);
    }

    #[test]
    fn what_is_typed_goes_over_the_plan() {
        let mut sweep = Plan::from_toml("[sweep]\nflows = [1]\ncores = [4]").unwrap().sweep;
        sweep.over(vec![axis("routes=7").unwrap(), axis("flows=2,3").unwrap()]).unwrap();
        let texts: Vec<_> = sweep.axes.iter().map(Axis::to_string).collect();
        assert_eq!(texts, ["routes 7", "flows 2, 3", "cores 4"]);
        let twice = sweep.over(vec![axis("flows=1").unwrap(), axis("flows=2").unwrap()]).unwrap_err();
        assert!(matches!(&twice, PlanError::Value { .. }), "{twice:?}");
        insta::assert_snapshot!(twice, @"sweep = flows: is given twice: list all of its values once");
    }
}
