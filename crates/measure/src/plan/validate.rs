//! What makes a plan valid: each value legal, and all of them in agreement.

use std::{fmt, net::IpAddr, ops::Deref, time::Duration};

use units::{Frames, FCS_BYTES};

use super::{
    document::Plan,
    error::PlanError,
    limits::*,
    search::{Method, SearchPlan},
    traffic::{FieldMode, FieldPlan, IpVersion, Traffic, L4},
};
use crate::schema::text::span_text;

/// Bytes of the stamp at the end of every test frame.
const STAMP_BYTES: u32 = 18;

/// A plan whose values are each legal and agree with each other. Made by [`Plan::validate`] only.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidPlan(Plan);

impl ValidPlan {
    /// The plan back, to be changed and validated again.
    pub fn into_inner(self) -> Plan {
        self.0
    }
}

impl Deref for ValidPlan {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl Plan {
    /// Checks everything that can be checked without ports, and writes out the defaults that depend on other keys.
    ///
    /// Errors with the first key found to be out of range or at odds with another.
    pub fn validate(mut self) -> Result<ValidPlan, PlanError> {
        self.check_traffic()?;
        self.check_frame_sizes()?;
        self.check_search()?;
        self.check_trust()?;
        self.settle_tests()?;
        self.check_dut()?;
        self.check_sweep()?;
        let (src, dst) = self.traffic.addresses();
        self.traffic.src_ip = Some(src);
        self.traffic.dst_ip = Some(dst);
        if self.search.method == Method::Mlrsearch {
            self.search.goals.get_or_insert_default();
        }
        self.search.max_trials = Some(self.search.max_trials());
        Ok(ValidPlan(self))
    }

    /// Every point of the sweep must be a plan.
    fn check_sweep(&self) -> Check {
        self.sweep.check()?;
        self.sweep.points().iter().try_for_each(|point| point.at(self).validate().map(drop))
    }

    fn check_frame_sizes(&self) -> Check {
        let key = "frame_sizes";
        if self.frame_sizes.is_empty() || self.frame_sizes.len() > 64 {
            return Err(PlanError::value(key, format!("{} sizes", self.frame_sizes.len()), "must list 1 to 64 sizes"));
        }
        let least = self.traffic.least_frame();
        for (i, size) in self.frame_sizes.iter().enumerate() {
            if size.smallest().bytes() < least {
                let what = self.traffic.headers();
                let legal =
                    format!("must be {least} to 9216 bytes to hold {what}, the {STAMP_BYTES}-byte stamp and FCS");
                return Err(PlanError::value(key, size.brief(), legal));
            }
            if self.frame_sizes[..i].contains(size) {
                return Err(PlanError::value(key, size.brief(), "is listed twice"));
            }
        }
        Ok(())
    }

    fn check_traffic(&self) -> Check {
        let t = &self.traffic;
        within("traffic.flows", t.flows, FLOWS)?;
        within("traffic.dscp", t.dscp, DSCP)?;
        within("traffic.ttl", t.ttl, TTL)?;
        within("traffic.seed", t.seed, SEED)?;
        if t.vlan.len() > 2 {
            return Err(PlanError::value("traffic.vlan", list(&t.vlan), "must be at most 2 ids"));
        }
        t.vlan.iter().try_for_each(|&v| within("traffic.vlan", v, VLAN_ID))?;
        if t.mpls.len() > 8 {
            return Err(PlanError::value("traffic.mpls", list(&t.mpls), "must be at most 8 labels"));
        }
        t.mpls.iter().try_for_each(|&v| within("traffic.mpls", v, MPLS_LABEL))?;
        t.mpls_back.iter().try_for_each(|&v| within("traffic.mpls_back", v, MPLS_LABEL))?;
        if !t.mpls_back.is_empty() && t.mpls_back.len() != t.mpls.len() {
            let legal = format!("must be as many as traffic.mpls has: {}", t.mpls.len());
            return Err(PlanError::value("traffic.mpls_back", list(&t.mpls_back), &legal));
        }
        for (key, macs) in [("traffic.src_mac", &t.src_mac), ("traffic.dst_mac", &t.dst_mac)] {
            if macs.len() > 2 {
                return Err(PlanError::value(key, list(macs), "must be at most 2 addresses, one a port"));
            }
            if let Some(bad) = macs.iter().find(|m| !is_mac(m)) {
                return Err(PlanError::value(key, bad, "must be like 02:00:00:00:00:01"));
            }
        }
        for (key, ip) in [("traffic.src_ip", t.src_ip), ("traffic.dst_ip", t.dst_ip)] {
            match (ip, t.ip) {
                (Some(ip @ IpAddr::V6(_)), IpVersion::V4) => {
                    return Err(PlanError::value(key, ip, "contradicts traffic.ip = \"v4\": give an IPv4 address"))
                }
                (Some(ip @ IpAddr::V4(_)), IpVersion::V6) => {
                    return Err(PlanError::value(key, ip, "contradicts traffic.ip = \"v6\": give an IPv6 address"))
                }
                _ => {}
            }
        }
        t.field.iter().enumerate().try_for_each(|(i, f)| check_field(i, f, t))
    }

    fn check_dut(&self) -> Check {
        let Some(routes) = self.dut.routes else { return Ok(()) };
        within("dut.routes", routes, ROUTES)?;
        let refused = |legal| Err(PlanError::value("dut.routes", routes, legal));
        match &self.traffic {
            t if t.ip != IpVersion::V4 => refused("are IPv4 routes: they contradict traffic.ip = \"v6\""),
            t if t.field.iter().any(|f| f.field == "dst_ip") => {
                refused("say what the destinations are: remove the field dst_ip")
            }
            _ => Ok(()),
        }
    }

    fn check_search(&self) -> Check {
        let s = &self.search;
        between("search.precision", s.precision, PRECISION)?;
        if s.tolerated_loss.get() >= 1.0 {
            return Err(PlanError::value("search.tolerated_loss", s.tolerated_loss, "must be 0 % to below 100 %"));
        }
        span("search.duration", s.duration, SHORTEST_TRIAL)?;
        span("search.timeout", s.timeout, SHORTEST_TRIAL)?;
        within("search.max_trials", s.max_trials(), TRIALS)?;
        within("search.retries", s.retries, RETRIES)?;
        self.check_goals()?;
        if s.method != Method::Tst009 && s.retries > 0 {
            let method = if s.method == Method::Rfc2544 { "rfc2544" } else { "mlrsearch" };
            let legal =
                format!("is loss verification: it needs search.method = \"tst009\"; with \"{method}\" it must be 0");
            return Err(PlanError::value("search.retries", s.retries, legal));
        }
        if s.retry_max_lost.is_some() && s.retries == 0 {
            let legal = "contradicts search.retries = 0: it limits retries that are never made";
            return Err(PlanError::value("search.retry_max_lost", s.retry_max_lost.unwrap_or(0), legal));
        }
        // Bounds in units that need the link are held against each other again when the ports are open.
        for &size in &self.frame_sizes {
            let Some(upper) = s.upper.and_then(|u| u.resolve(size, self.link.speed).ok()) else { continue };
            check_bounds(self, size, s.lower.resolve(size, self.link.speed).ok().map(units::Fps::get), upper.get())?;
        }
        if self.wants_latency() {
            span("latency.duration", self.latency.duration, SHORTEST_TRIAL)?;
        }
        Ok(())
    }

    /// What MLRsearch takes from its goals is not to be given beside them, and goals are for MLRsearch only.
    fn check_goals(&self) -> Check {
        let (s, usual) = (&self.search, SearchPlan::default());
        if s.method != Method::Mlrsearch {
            let legal = "is for search.method = \"mlrsearch\": remove it, or choose that method";
            if s.goals.is_some() {
                return Err(PlanError::value("search.goals", "(given)", legal));
            }
            if !s.warmup.is_zero() {
                return Err(PlanError::value("search.warmup", span_text(s.warmup), legal));
            }
            return Ok(());
        }
        // Of what was not read from a file, only what differs is known to have been given.
        if s.tolerated_loss != usual.tolerated_loss {
            return Err(SearchPlan::of_goals("tolerated_loss", s.tolerated_loss));
        }
        if s.precision != usual.precision {
            return Err(SearchPlan::of_goals("precision", s.precision));
        }
        if s.duration != usual.duration {
            return Err(SearchPlan::of_goals("duration", span_text(s.duration)));
        }
        if !s.warmup.is_zero() {
            span("search.warmup", s.warmup, SHORTEST_TRIAL)?;
        }
        let set = s.goals.clone().unwrap_or_default().set()?;
        for goal in set.goals() {
            for (key, time) in [("initial_duration", goal.initial_s()), ("duration_sum", goal.sum_s())] {
                let key = format!("search.goal {:?}: {key}", goal.name);
                span(&key, Duration::from_secs_f64(time), SHORTEST_TRIAL)?;
            }
        }
        Ok(())
    }

    fn check_trust(&self) -> Check {
        let t = &self.trust;
        within("trust.max_repeats", t.max_repeats, REPEATS)?;
        between("trust.offered_tolerance", t.offered_tolerance, TOLERANCE)?;
        between("trust.duration_tolerance", t.duration_tolerance, TOLERANCE)?;
        span("trust.max_gap", t.max_gap, SHORTEST_GAP)?;
        span("trust.residual", t.residual, SHORTEST_RESIDUAL)?;
        span("trust.ready_timeout", t.ready_timeout, Duration::ZERO)?;
        span("trust.settle", t.settle, Duration::ZERO)
    }
}

/// Holds the bounds of a search against each other and the link, once they are frames per second.
pub(crate) fn check_bounds(plan: &Plan, frames: Frames, lower: Option<f64>, upper: f64) -> Check {
    let (s, pps) = (&plan.search, |v: f64| format!("{}pps", units::si(v)));
    let written = s.upper.map_or_else(|| pps(upper), |u| u.to_string());
    if upper <= 0.0 {
        return Err(PlanError::value("search.upper", written, "must be above 0 frames/s"));
    }
    if let Some(rate) = plan.link.speed.map(|l| l.line_rate(frames).get()).filter(|&rate| upper > rate * 1.000_001) {
        let legal = format!("must be at most the line rate, {} at {}", pps(rate), frames.with_unit("bytes"));
        return Err(PlanError::value("search.upper", written, legal));
    }
    match lower {
        Some(lower) if lower >= upper => {
            let legal =
                format!("must be below search.upper = {written}, {} at {}", pps(upper), frames.with_unit("bytes"));
            Err(PlanError::value("search.lower", s.lower, legal))
        }
        _ => Ok(()),
    }
}

impl Traffic {
    /// Smallest frame that holds the headers, the stamp and the FCS, bytes.
    fn least_frame(&self) -> u32 {
        let ip = if self.ip == IpVersion::V4 { 20 } else { 40 };
        let l4 = match self.l4 {
            L4::Udp => 8,
            L4::Tcp => 20,
            L4::None => 0,
        };
        14 + 4 * (self.vlan.len() + self.mpls.len()) as u32 + ip + l4 + STAMP_BYTES + FCS_BYTES
    }

    fn headers(&self) -> String {
        let ip = if self.ip == IpVersion::V4 { "IPv4" } else { "IPv6" };
        let l4 = match self.l4 {
            L4::Udp => ", UDP",
            L4::Tcp => ", TCP",
            L4::None => "",
        };
        let vlan = format!("{} VLAN, ", self.vlan.len());
        let mpls = format!("{} MPLS, ", self.mpls.len());
        let shown = |n: usize, text: String| if n > 0 { text } else { String::new() };
        format!("Ethernet, {}{}{ip}{l4}", shown(self.vlan.len(), vlan), shown(self.mpls.len(), mpls))
    }
}

fn check_field(index: usize, f: &FieldPlan, t: &Traffic) -> Check {
    let key = |name: &str| format!("traffic.field[{index}].{name}");
    let ip_bits = if t.ip == IpVersion::V4 { 32 } else { 128 };
    let bits = match f.field.as_str() {
        "src_mac" | "dst_mac" => Some(48),
        "src_ip" | "dst_ip" => Some(ip_bits),
        port @ ("src_port" | "dst_port") if t.l4 == L4::None => {
            let legal = "needs a transport header, and traffic.l4 = \"none\" has none";
            return Err(PlanError::value(key("field"), format!("{port:?}"), legal));
        }
        "src_port" | "dst_port" => Some(16),
        "vlan" if t.vlan.is_empty() => {
            return Err(PlanError::value(key("field"), "\"vlan\"", "needs traffic.vlan, which is empty"))
        }
        "mpls" if t.mpls.is_empty() => {
            return Err(PlanError::value(key("field"), "\"mpls\"", "needs traffic.mpls, which is empty"))
        }
        "vlan" => Some(12),
        "mpls" => Some(20),
        raw if f.mode == FieldMode::Mask
            && raw.strip_prefix("raw@").is_some_and(|o| o.parse::<u16>().is_ok_and(|o| o < 9216)) =>
        {
            None
        }
        other => {
            let legal = "must be src_mac, dst_mac, src_ip, dst_ip, src_port, dst_port, vlan, mpls, or raw@OFFSET (mode = \"mask\" only)";
            return Err(PlanError::value(key("field"), format!("{other:?}"), legal));
        }
    };
    let mode = match f.mode {
        FieldMode::Increment => "increment",
        FieldMode::Random => "random",
        FieldMode::Mask => "mask",
        FieldMode::List => "list",
    };
    let counted = matches!(f.mode, FieldMode::Increment | FieldMode::Random);
    for (name, given, allowed) in [
        ("start", f.start.is_some(), counted),
        ("count", f.count.is_some(), counted),
        ("step", f.step.is_some(), f.mode == FieldMode::Increment),
        ("mask", f.mask.is_some(), f.mode == FieldMode::Mask),
        ("values", !f.values.is_empty(), f.mode == FieldMode::List),
    ] {
        if given && !allowed {
            return Err(PlanError::value(key(name), "(given)", format!("is not used by mode = \"{mode}\": remove it")));
        }
        if !given && allowed && matches!(name, "count" | "mask" | "values") {
            return Err(PlanError::value(key(name), "(absent)", format!("is needed by mode = \"{mode}\"")));
        }
    }
    if let Some(count) = f.count {
        within(&key("count"), count, 1..=bits.map_or(1 << 32, |b| 1_u64 << b.min(32)))?;
    }
    if let Some(mask) = &f.mask {
        let legal_chars = mask.chars().all(|c| matches!(c, '0' | '1' | 'X' | 'x'));
        let legal_len = match bits {
            Some(bits) => mask.len() == bits,
            None => mask.len() % 8 == 0 && (8..=128).contains(&mask.len()),
        };
        if !legal_chars || !legal_len {
            let length = bits.map_or("8, 16, ... 128".to_owned(), |b| b.to_string());
            let legal = format!("must be {length} characters 0, 1 or X, one a bit");
            return Err(PlanError::value(key("mask"), format!("{mask:?}"), legal));
        }
    }
    Ok(())
}

fn list<T: fmt::Display>(values: &[T]) -> String {
    let texts: Vec<_> = values.iter().map(T::to_string).collect();
    format!("[{}]", texts.join(", "))
}

fn is_mac(text: &str) -> bool {
    let mut octets = 0;
    text.split([':', '-']).all(|o| {
        octets += 1;
        o.len() == 2 && o.chars().all(|c| c.is_ascii_hexdigit())
    }) && octets == 6
}
