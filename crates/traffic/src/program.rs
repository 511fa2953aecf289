//! A stream's varying fields compiled to operations on whole bursts.

use std::sync::Arc;

use packet::{
    frame::{IpSpec, L4Spec, Template},
    headers::{ipv4, ipv6, tcp, udp},
    stamp,
};

use crate::{
    flows::{Column, Program, COLUMNS},
    hash::{mix, GOLDEN},
    stream::{Field, FieldSpec, StreamError, StreamSpec, Values, VARIABLE_BYTES},
};

/// Where the values of a field come from, as a function of the frame's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// `start + (n mod count) * step`.
    Increment { start: u64, step: u64, count: u64 },
    /// `start + ((n mod total) / run) mod count`.
    Digit { start: u64, total: u64, run: u64, count: u64 },
    /// `start + hash(n) * count >> 64`.
    Random { start: u64, count: u64, key: u64 },
    /// `fixed | hash(n) & mask`.
    Masked { fixed: u64, mask: u64, key: u64 },
    /// `values[n mod len]`.
    List { values: Box<[u64]> },
    /// A column of a flow program.
    Flows { program: Arc<Program>, column: Column },
}

impl Source {
    /// The values of frames `n`, `n + 1`, ...
    #[inline]
    pub(crate) fn values(&self, n: u64, out: &mut [u64]) {
        match *self {
            // Both in stretches between two wraps, so that the inner loops have no branches.
            Self::Increment { start, step, count } => {
                let (mut k, mut rest) = (n % count, out);
                while !rest.is_empty() {
                    let stretch = (count - k).min(rest.len() as u64);
                    let (now, later) = rest.split_at_mut(stretch as usize);
                    let first = start + k * step;
                    now.iter_mut().zip(0..).for_each(|(value, i)| *value = first + i * step);
                    k = if k + stretch == count { 0 } else { k + stretch };
                    rest = later;
                }
            }
            Self::Digit { start, total, run, count } => {
                let (mut flow, mut rest) = (n % total, out);
                while !rest.is_empty() {
                    let digit = flow / run % count;
                    let (left, step) = if run == 1 { (count - digit, 1) } else { (run - flow % run, 0) };
                    let stretch = left.min(total - flow).min(rest.len() as u64);
                    let (now, later) = rest.split_at_mut(stretch as usize);
                    now.iter_mut().zip(0..).for_each(|(value, i)| *value = start + digit + i * step);
                    flow = if flow + stretch == total { 0 } else { flow + stretch };
                    rest = later;
                }
            }
            Self::Random { start, count, key } => {
                let mut x = key.wrapping_add(n.wrapping_mul(GOLDEN));
                for value in out {
                    *value = start + ((u128::from(mix(x)) * u128::from(count)) >> 64) as u64;
                    x = x.wrapping_add(GOLDEN);
                }
            }
            Self::Masked { fixed, mask, key } => {
                let mut x = key.wrapping_add(n.wrapping_mul(GOLDEN));
                for value in out {
                    *value = fixed | mix(x) & mask;
                    x = x.wrapping_add(GOLDEN);
                }
            }
            Self::List { ref values } => {
                let mut k = (n % values.len().max(1) as u64) as usize;
                for value in out {
                    *value = values.get(k).copied().unwrap_or(0);
                    k = if k + 1 == values.len() { 0 } else { k + 1 };
                }
            }
            Self::Flows { ref program, column } => program.values(column, n, out),
        }
    }
}

/// One varying field: where its values go and which checksums cover them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Op {
    /// Offset of the bytes rewritten.
    pub at: usize,
    /// Their number: 1, 2, 4, 6 or 8.
    pub width: usize,
    /// Bits of those bytes that do not vary.
    pub base: u64,
    /// How far the value is shifted up to its bits.
    pub shift: u32,
    /// The values.
    pub source: Source,
    /// Whether the IPv4 header checksum covers the field.
    pub in_ip_sum: bool,
    /// Whether the transport checksum covers the field.
    pub in_l4_sum: bool,
    /// The upper half of an IPv6 address, which stands before the field and does not vary.
    pub upper: Option<u64>,
}

/// Where a field stands.
struct Place {
    at: usize,
    width: usize,
    shift: u32,
    /// Number of bits that may vary.
    bits: u32,
    /// Largest legal value.
    max: u64,
}

impl StreamSpec {
    /// Whether frames of this spec can be built. Errors name the field, the value and what is legal.
    pub fn validate(&self) -> Result<(), StreamError> {
        compile(self, &smallest(self)?).map(|_| ())
    }
}

/// The smallest frame of a stream: what fits it fits all.
pub(crate) fn smallest(spec: &StreamSpec) -> Result<Template, StreamError> {
    Ok(Template::new(&spec.headers, spec.frame_size.smallest())?)
}

/// The fields that make `flows` distinct 5-tuples: none for one flow, and the address only when ports run out or when
/// there are none.
fn flow_sources(spec: &StreamSpec, flows: u64) -> Result<[Option<(Field, Source)>; 2], StreamError> {
    let (first_ip, last_ip) = match spec.headers.ip {
        IpSpec::V4 { src, .. } => (u64::from(src.to_bits()), u64::from(u32::MAX)),
        IpSpec::V6 { src, .. } => (src.to_bits() as u64, u64::MAX),
    };
    let port = spec.headers.l4.src_port().map(u64::from);
    let (ports, from) = port.map_or((1, "address"), |first| (65536 - first, "address and port"));
    let addresses = (last_ip - first_ip).saturating_add(1);
    let most = ports.saturating_mul(addresses);
    if flows == 0 || flows > most {
        return Err(StreamError::Flows { asked: flows, most, from });
    }
    let digit = |start, run, count| Source::Digit { start, total: flows, run, count };
    let addresses = flows.div_ceil(ports);
    let port = port.filter(|_| ports.min(flows) > 1).map(|first| match addresses {
        // The common case, and a little cheaper.
        1 => Source::Increment { start: first, step: 1, count: flows },
        _ => digit(first, 1, ports),
    });
    let address = (addresses > 1).then(|| digit(first_ip, ports, addresses));
    Ok([port.map(|source| (Field::SrcPort, source)), address.map(|source| (Field::SrcIp, source))])
}

/// Compiles the spec's fields for frames like this template. Errors name the field and what is legal.
pub(crate) fn compile(spec: &StreamSpec, template: &Template) -> Result<Vec<Op>, StreamError> {
    let mut ops: Vec<(Field, Op)> = Vec::new();
    for (i, FieldSpec { field, values }) in spec.fields.iter().enumerate() {
        let place = place(spec, template, *field)?;
        let current = read(template.bytes(), &place);
        let (source, upper) =
            source(*field, &place, current, values, (spec.flows, mix(spec.seed ^ mix(i as u64 + 1))))?;
        ops.push((*field, op(spec, template, *field, &place, source, upper)?));
    }
    if let Some(flows) = spec.flows {
        for (field, source) in flow_sources(spec, flows)?.into_iter().flatten() {
            let place = place(spec, template, field)?;
            ops.push((field, op(spec, template, field, &place, source, None)?));
        }
    }
    for (i, (first, a)) in ops.iter().enumerate() {
        for (second, b) in ops.iter().skip(i + 1) {
            if a.at < b.at + b.width && b.at < a.at + a.width {
                return Err(StreamError::Overlap { first: *first, second: *second });
            }
        }
    }
    Ok(ops.into_iter().map(|(_, op)| op).collect())
}

/// Compiles a flow program for frames like this template.
pub(crate) fn compile_flows(
    spec: &StreamSpec,
    template: &Template,
    program: &Arc<Program>,
) -> Result<Vec<Op>, StreamError> {
    let op = |column: &Column| {
        let (field, place) = match *column {
            Column::Field(field) => (field, place(spec, template, field)?),
            Column::TcpFlags => {
                let at = template.offsets().l4 + TCP_FLAGS;
                (Field::Raw { offset: at, width: 1 }, Place { at, width: 1, shift: 0, bits: 8, max: 255 })
            }
        };
        op(spec, template, field, &place, Source::Flows { program: Arc::clone(program), column: *column }, None)
    };
    COLUMNS.iter().filter(|column| program.varies(**column)).map(op).collect()
}

/// Where in the TCP header the flags stand (RFC 9293 3.1).
const TCP_FLAGS: usize = 13;

fn place(spec: &StreamSpec, template: &Template, field: Field) -> Result<Place, StreamError> {
    let at = template.offsets();
    let absent = || StreamError::Absent { field, headers: spec.headers.to_string() };
    let bytes = |at, width: usize| {
        let bits = 8 * width as u32;
        Place { at, width, shift: 0, bits, max: u64::MAX >> (64 - bits) }
    };
    let (src, dst, address) = match spec.headers.ip {
        IpSpec::V4 { .. } => (at.l3 + ipv4::SRC, at.l3 + ipv4::DST, 4),
        IpSpec::V6 { .. } => (at.l3 + ipv6::SRC + 8, at.l3 + ipv6::DST + 8, 8),
    };
    Ok(match field {
        Field::DstMac => bytes(0, 6),
        Field::SrcMac => bytes(6, 6),
        Field::SrcIp => bytes(src, address),
        Field::DstIp => bytes(dst, address),
        Field::SrcPort | Field::DstPort if spec.headers.l4 == L4Spec::None => {
            return Err(StreamError::NoTransport { field, headers: spec.headers.to_string() })
        }
        Field::SrcPort => bytes(at.l4, 2),
        Field::DstPort => bytes(at.l4 + 2, 2),
        Field::VlanId(i) if i < spec.headers.vlans.len() => {
            Place { at: at.vlan + 4 * i, width: 2, shift: 0, bits: 12, max: 4094 }
        }
        Field::MplsLabel(i) if i < spec.headers.mpls.len() => {
            Place { at: at.mpls + 4 * i, width: 4, shift: 12, bits: 20, max: 0xf_ffff }
        }
        Field::VlanId(_) | Field::MplsLabel(_) => return Err(absent()),
        Field::Raw { offset, width } => {
            let raw = |what| Err(StreamError::Raw { field, what });
            if !matches!(width, 1 | 2 | 4) {
                return raw("must be 1, 2 or 4 bytes wide");
            }
            let limit = at.stamp.min(VARIABLE_BYTES);
            if offset > limit || offset + width > limit {
                return raw("must lie within the first 128 bytes of the frame and before the stamp, its last 18");
            }
            let fixed = fixed_bytes(spec, template);
            if (offset..offset + width).any(|byte| fixed.contains(&byte)) {
                return raw("must not cover a type, length, fragment, checksum or bottom-of-stack field");
            }
            bytes(offset, width)
        }
    })
}

/// Bytes that say how the rest of the frame is to be read.
fn fixed_bytes(spec: &StreamSpec, template: &Template) -> Vec<usize> {
    let at = template.offsets();
    let mut fixed = vec![12, 13];
    fixed.extend((0..spec.headers.vlans.len()).flat_map(|i| [at.vlan + 4 * i + 2, at.vlan + 4 * i + 3]));
    fixed.extend((0..spec.headers.mpls.len()).map(|i| at.mpls + 4 * i + 2));
    match spec.headers.ip {
        IpSpec::V4 { .. } => fixed.extend([0, 2, 3, 6, 7, 9, 10, 11].map(|byte| at.l3 + byte)),
        IpSpec::V6 { .. } => fixed.extend([0, 4, 5, 6].map(|byte| at.l3 + byte)),
    }
    match spec.headers.l4 {
        L4Spec::Udp { .. } => fixed.extend([4, 5, udp::CHECKSUM, udp::CHECKSUM + 1].map(|byte| at.l4 + byte)),
        L4Spec::Tcp { .. } => fixed.extend([12, tcp::CHECKSUM, tcp::CHECKSUM + 1].map(|byte| at.l4 + byte)),
        L4Spec::None => {}
    }
    fixed.extend(at.stamp..at.stamp + stamp::LEN);
    fixed
}

/// The bytes of a place as a number.
fn read(bytes: &[u8], place: &Place) -> u64 {
    bytes.iter().skip(place.at).take(place.width).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn source(
    field: Field,
    place: &Place,
    current: u64,
    values: &Values,
    (flows, key): (Option<u64>, u64),
) -> Result<(Source, Option<u64>), StreamError> {
    let value_bits = u64::MAX >> (64 - place.bits);
    let own = current >> place.shift & value_bits;
    let wide = matches!(field, Field::SrcIp | Field::DstIp) && place.width == 8;
    let legal = || if wide { "an IPv6 address".to_owned() } else { format!("0 to {}", place.max) };
    // A value as its low bits and, of an IPv6 address, the upper half.
    let split = |value: u128| match (wide, (value >> 64) as u64, value as u64) {
        (true, upper, low) => Ok((low, Some(upper))),
        (false, 0, low) if low <= place.max => Ok((low, None)),
        _ => Err(StreamError::values(field, format!("value {value}"), legal())),
    };
    let start_or_own = |start: Option<u128>| start.map_or(Ok((own, None)), split);
    let spread = |start: u64, count: u64, step: u64| {
        let last = count.checked_sub(1).and_then(|n| n.checked_mul(step)).and_then(|d| d.checked_add(start));
        match last {
            Some(last) if last <= place.max => Ok(()),
            _ => Err(StreamError::values(
                field,
                format!("{count} values from {start} in steps of {step}"),
                format!("at least one, and the last at most {}", place.max),
            )),
        }
    };
    match values {
        Values::Increment { start, count, step } => {
            let (start, upper) = start_or_own(*start)?;
            spread(start, *count, *step)?;
            if *step == 0 && *count > 1 {
                return Err(StreamError::values(field, "step 0", "1 or more, or a count of 1"));
            }
            Ok((Source::Increment { start, step: *step, count: *count }, upper))
        }
        Values::Random { start, count } => {
            let (start, upper) = start_or_own(*start)?;
            spread(start, *count, 1)?;
            Ok((Source::Random { start, count: *count, key }, upper))
        }
        Values::OfFlow { start, count } => {
            let (start, upper) = split(*start)?;
            spread(start, *count, 1)?;
            let flows = flows.unwrap_or(1).max(1);
            let source = if *count < flows {
                Source::Digit { start, total: flows, run: 1, count: *count }
            } else {
                Source::Increment { start, step: *count / flows, count: flows }
            };
            Ok((source, upper))
        }
        Values::Masked(mask) => {
            if matches!(field, Field::Raw { .. }) && mask.bits() != place.bits {
                let legal = format!("as long as the field: {} bits", place.bits);
                return Err(StreamError::values(field, format!("mask {mask}"), legal));
            }
            let (fixed, random) = (u64::from(mask.fixed()), u64::from(mask.random()));
            if fixed | random > place.max {
                // VLAN 4095 is reserved, and a mask that may draw it would now and then send it.
                return Err(StreamError::values(field, format!("mask {mask}"), format!("values of {}", legal())));
            }
            let covered = u64::MAX >> (64 - mask.bits());
            Ok((Source::Masked { fixed: fixed | own & !covered, mask: random, key }, None))
        }
        Values::List(list) => {
            let halves = list.iter().map(|value| split(*value)).collect::<Result<Vec<_>, _>>()?;
            let Some(&(_, upper)) = halves.first() else {
                return Err(StreamError::values(field, "an empty list", "at least one value"));
            };
            if halves.iter().any(|(_, other)| *other != upper) {
                return Err(StreamError::values(field, "a list", "IPv6 addresses with the same upper 64 bits"));
            }
            Ok((Source::List { values: halves.into_iter().map(|(low, _)| low).collect() }, upper))
        }
    }
}

fn op(
    spec: &StreamSpec,
    template: &Template,
    field: Field,
    place: &Place,
    source: Source,
    upper: Option<u64>,
) -> Result<Op, StreamError> {
    let at = template.offsets();
    let v4 = matches!(spec.headers.ip, IpSpec::V4 { .. });
    let addresses = at.l3 + if v4 { ipv4::SRC } else { ipv6::SRC };
    let covered = |byte: usize| (v4 && (at.l3..at.l4).contains(&byte), byte >= addresses);
    let (in_ip_sum, in_l4_sum) = covered(place.at);
    if covered(place.at + place.width - 1) != (in_ip_sum, in_l4_sum) {
        return Err(StreamError::Raw { field, what: "must not reach from one header into another" });
    }
    // Without a transport header nothing sums the addresses and the payload.
    let in_l4_sum = in_l4_sum && spec.headers.l4 != L4Spec::None;
    let value_bits = (u64::MAX >> (64 - place.bits)) << place.shift;
    let base = read(template.bytes(), place) & !value_bits;
    Ok(Op { at: place.at, width: place.width, base, shift: place.shift, source, in_ip_sum, in_l4_sum, upper })
}
