//! From flags to a validated plan: a plan by name or file, then the flags that change it.

use std::time::Duration;

use campaign::plans::load;
use failure::Failure;
use measure::plan::{Direction, EvidenceBy, FieldMode, FieldPlan, Goals, IpVersion, Method, Plan, ValidPlan, L4};

use super::{
    blame::as_flags,
    sweep_flags,
    times::{time, time_or_none},
};
use crate::cli::{
    flows_arg::FlowsArg, BenchArgs, EvidenceArg, GoalsArg, IpArg, L4Arg, MethodArg, PortArgs, SearchArgs, TrafficArgs,
};

/// The validated plan of a `bench`: named or from a file, changed by flags.
pub fn for_bench(args: &BenchArgs) -> Result<ValidPlan, Failure> {
    named(args.plan_name(), args)
}

/// The same for another plan: a run of the named plan.
pub fn named(name: &str, args: &BenchArgs) -> Result<ValidPlan, Failure> {
    let mut plan = load(name)?;
    // Before `--quick`, which depends on the method and the tests.
    method(&mut plan, &args.search)?;
    replace(&mut plan.tests, &args.tests);
    if args.throughput.is_some() {
        plan.throughput = args.throughput;
        if plan.procedures().next().is_some() {
            plan.tests.retain(|t| !t.is_search());
        }
    }
    if args.is_quick() {
        plan = plan.quick();
    }
    if !args.frame_sizes.is_empty() {
        plan.frame_sizes.clone_from(&args.frame_sizes);
    }
    traffic(&mut plan, &args.traffic)?;
    search(&mut plan, &args.search)?;
    link(&mut plan, &args.ports);
    sweep_flags::over(&mut plan, args)?;
    plan.validate().map_err(|e| match load(name).map(|plan| plan.validate()) {
        // The plan alone is right, so a flag is wrong.
        Ok(Ok(_)) => Failure::usage(as_flags(&e, "--frame-sizes")),
        _ => e.into(),
    })
}

/// Applies `TrafficArgs` to a plan.
pub fn traffic(plan: &mut Plan, args: &TrafficArgs) -> Result<(), Failure> {
    match args.flows {
        None => {}
        Some(FlowsArg::Count(flows)) => plan.traffic.flows = flows,
        Some(FlowsArg::Program(program)) => {
            return Err(Failure::usage(format!(
                "--flows {program}: a flow program is for scoring a flow logger: say where its records are read \
                 (linerate flowlog score --logger ipfix=udp://0.0.0.0:4739), or give a number of flows"
            )))
        }
    }
    headers(plan, args)
}

/// The flags for the contents of frames.
pub fn headers(plan: &mut Plan, args: &TrafficArgs) -> Result<(), Failure> {
    let t = &mut plan.traffic;
    if args.both_ways {
        t.direction = Direction::BothWays;
    }
    set(&mut t.ip, args.ip.map(|ip| if ip == IpArg::V4 { IpVersion::V4 } else { IpVersion::V6 }));
    let l4 = |l4| match l4 {
        L4Arg::Udp => L4::Udp,
        L4Arg::Tcp => L4::Tcp,
        L4Arg::None => L4::None,
    };
    set(&mut t.l4, args.l4.map(l4));
    replace(&mut t.vlan, &args.vlan);
    replace(&mut t.mpls, &args.mpls);
    replace(&mut t.src_mac, &args.src_mac);
    replace(&mut t.dst_mac, &args.dst_mac);
    for (flag, text, slot) in [("--src-ip", &args.src_ip, &mut t.src_ip), ("--dst-ip", &args.dst_ip, &mut t.dst_ip)] {
        if let Some(text) = text {
            let address = text.parse().map_err(|_| {
                Failure::usage(format!(
                    "{flag} {text:?}: must be an IPv4 or IPv6 address, like 198.18.0.2 or 2001:2::2"
                ))
            })?;
            *slot = Some(address);
        }
    }
    set(&mut t.src_port, args.src_port);
    set(&mut t.dst_port, args.dst_port);
    set(&mut t.seed, args.seed);
    if !args.fields.is_empty() {
        t.field = args.fields.iter().map(|text| field(text)).collect::<Result<_, _>>()?;
    }
    Ok(())
}

/// The method, and the flags of MLRsearch.
fn method(plan: &mut Plan, args: &SearchArgs) -> Result<(), Failure> {
    let s = &mut plan.search;
    let method = |m| match m {
        MethodArg::Rfc2544 => Method::Rfc2544,
        MethodArg::Tst009 => Method::Tst009,
        MethodArg::Mlrsearch => Method::Mlrsearch,
    };
    set(&mut s.method, args.method.map(method));
    if args.method.is_some() && s.method != Method::Mlrsearch {
        // The goals of the plan belong to the method that the flag replaced.
        s.goals = None;
        s.warmup = Duration::ZERO;
    }
    let name = |goals| match goals {
        GoalsArg::Csit => "csit",
        GoalsArg::Rfc2544 => "rfc2544",
        GoalsArg::Tst009 => "tst009",
    };
    if let Some(goals) = args.goals {
        s.goals = Some(Goals::Named(name(goals).to_owned()));
    }
    if let Some(text) = &args.warmup {
        s.warmup = time("--warmup", text)?;
    }
    if s.method != Method::Mlrsearch {
        return Ok(());
    }
    // A flag with the default value contradicts the goals too.
    let given = [
        ("--tolerated-loss", args.tolerated_loss.is_some()),
        ("--precision", args.precision.is_some()),
        ("--duration", args.duration.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag}: is each goal's own with --method mlrsearch: leave it out, choose --goals, or list goals in a plan \
             ([[search.goals]])"
        ))),
    }
}

fn search(plan: &mut Plan, args: &SearchArgs) -> Result<(), Failure> {
    let s = &mut plan.search;
    set(&mut s.tolerated_loss, args.tolerated_loss);
    set(&mut s.precision, args.precision);
    set(&mut s.lower, args.lower);
    if args.upper.is_some() {
        s.upper = args.upper;
    }
    match (args.retries, s.method) {
        (Some(retries), _) => s.retries = retries,
        // `--method tst009` asks for loss verification, so zero retries are not enough.
        (None, Method::Tst009) if args.method.is_some() && s.retries == 0 => s.retries = 1,
        _ => {}
    }
    set(&mut plan.trust.max_repeats, args.max_repeats);
    set(
        &mut plan.trust.evidence,
        args.evidence.map(|rule| match rule {
            EvidenceArg::Slices => EvidenceBy::Slices,
            EvidenceArg::WholeTrial => EvidenceBy::WholeTrial,
        }),
    );
    if let Some(text) = &args.duration {
        s.duration = time("--duration", text)?;
    }
    if let Some(text) = &args.ready_timeout {
        plan.trust.ready_timeout = time_or_none("--ready-timeout", text)?;
    }
    if let Some(text) = &args.latency_duration {
        plan.latency.duration = time("--latency-duration", text)?;
    }
    if args.no_latency {
        plan.latency.enabled = false;
    }
    Ok(())
}

/// The link speed given on the command line.
pub fn link(plan: &mut Plan, args: &PortArgs) {
    if args.link.is_some() {
        plan.link.speed = args.link;
    }
}

fn set<T>(slot: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *slot = value;
    }
}

fn replace<T: Clone>(slot: &mut Vec<T>, given: &[T]) {
    if !given.is_empty() {
        *slot = given.to_vec();
    }
}

/// `NAME:increment:START:COUNT[:STEP]`, `NAME:random:START:COUNT`, `NAME:mask:BITS`, `NAME:list:A/B/C`. Put an address
/// with colons in brackets: `dst_ip:increment:[2001:2::1]:1000`.
fn field(text: &str) -> Result<FieldPlan, Failure> {
    let err = |what: &str| {
        Failure::usage(format!(
            "--field {text:?}: {what}; must be NAME:increment:START:COUNT[:STEP], NAME:random:START:COUNT, \
             NAME:mask:BITS or NAME:list:A/B/C (an address with colons in brackets)"
        ))
    };
    let parts = split_brackets(text);
    let [name, mode, rest @ ..] = parts.as_slice() else { return Err(err("has no mode")) };
    let number = |text: &String| text.parse().map_err(|_| err(&format!("{text:?} is not a number")));
    let mut plan = FieldPlan {
        field: name.clone(),
        mode: FieldMode::Increment,
        start: None,
        count: None,
        step: None,
        mask: None,
        values: Vec::new(),
    };
    match (mode.as_str(), rest) {
        ("increment", [start, count, step @ ..]) if step.len() <= 1 => {
            plan.start = Some(start.clone());
            plan.count = Some(number(count)?);
            plan.step = step.first().map(number).transpose()?;
        }
        ("random", [start, count]) => {
            plan.mode = FieldMode::Random;
            plan.start = Some(start.clone());
            plan.count = Some(number(count)?);
        }
        ("mask", [bits]) => {
            plan.mode = FieldMode::Mask;
            plan.mask = Some(bits.clone());
        }
        ("list", [values]) => {
            plan.mode = FieldMode::List;
            plan.values = values.split('/').map(str::to_owned).collect();
        }
        ("increment" | "random" | "mask" | "list", _) => return Err(err("has too few or too many parts")),
        _ => return Err(err(&format!("unknown mode {mode:?}"))),
    }
    Ok(plan)
}

/// Splits at colons outside brackets, and removes the brackets.
fn split_brackets(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0u32;
    for c in text.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => parts.push(String::new()),
            _ => {
                if let Some(last) = parts.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_as_documented() {
        let f = field("src_port:increment:1024:1000").unwrap();
        assert_eq!((f.start.as_deref(), f.count, f.step), (Some("1024"), Some(1000), None));
        let f = field("dst_ip:random:[2001:2::1]:16").unwrap();
        assert_eq!((f.start.as_deref(), f.count), (Some("2001:2::1"), Some(16)));
        assert_eq!(field("src_ip:mask:0000101000000000XXXX000000000001").unwrap().mode, FieldMode::Mask);
        assert_eq!(field("vlan:list:1/2/3").unwrap().values, ["1", "2", "3"]);
        for bad in ["", "src_port", "src_port:shuffle:1:2", "src_port:random:1", "src_port:random:1:x", "a:list:1:2"] {
            assert_eq!(field(bad).unwrap_err().exit, failure::Exit::Usage, "{bad}");
        }
        insta::assert_snapshot!(field("src_port").unwrap_err().text, @r#"--field "src_port": has no mode; must be NAME:increment:START:COUNT[:STEP], NAME:random:START:COUNT, NAME:mask:BITS or NAME:list:A/B/C (an address with colons in brackets)"#);
    }
}
