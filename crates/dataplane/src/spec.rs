//! Which function to run, as text or TOML, and the function made from it.

use std::{fmt, str::FromStr};

use packet::{Buffer, Burst, Clock, MacAddr};
use serde::{Deserialize, Serialize};

use crate::{
    l3::{L3Config, L3},
    node::{Laps, NodeStats},
    Function, Null, Outputs, PortMap, SpecError, Verdict, L2,
};

/// A network function as asked for: `null`, `l2`, `l2:macswap` or `l3` on the command line, a table with `kind` in
/// TOML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum FunctionSpec {
    /// Port to port, frames unchanged.
    Null,
    /// Layer-2 cross-connect.
    L2 {
        /// Swap the MAC addresses.
        #[serde(default)]
        mac_swap: bool,
    },
    /// IPv4 and IPv6 routing. On the command line without routes: they come from a file or
    /// [`L3Config::benchmark`].
    L3(L3Config),
}

impl FunctionSpec {
    /// Makes the function for ports with these MAC addresses, joined two by two. Errors name the key and the range.
    pub fn build(&self, port_macs: &[MacAddr]) -> Result<AnyFunction, SpecError> {
        let map = PortMap::pairs(port_macs.len());
        Ok(match self {
            Self::Null => AnyFunction::Null(Null::new(map)),
            Self::L2 { mac_swap } => AnyFunction::L2(L2::new(map, *mac_swap)),
            Self::L3(config) => AnyFunction::L3(L3::new(config, port_macs)?),
        })
    }
}

impl FromStr for FunctionSpec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim() {
            "null" => Ok(Self::Null),
            "l2" => Ok(Self::L2 { mac_swap: false }),
            "l2:macswap" => Ok(Self::L2 { mac_swap: true }),
            "l3" => Ok(Self::L3(L3Config::default())),
            _ => Err(SpecError::new("function", text, "must be null, l2, l2:macswap or l3")),
        }
    }
}

impl fmt::Display for FunctionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Null => "null",
            Self::L2 { mac_swap: false } => "l2",
            Self::L2 { mac_swap: true } => "l2:macswap",
            Self::L3(_) => "l3",
        })
    }
}

/// Any of the functions, chosen once: one branch a burst, and the code behind it is still the concrete one's.
#[derive(Debug)]
pub enum AnyFunction<L = L3> {
    /// Port to port.
    Null(Null),
    /// Cross-connect.
    L2(L2),
    /// Routing, with the default FIB or another.
    L3(L),
}

macro_rules! each {
    ($self:expr, $f:ident => $call:expr) => {
        match $self {
            AnyFunction::Null($f) => $call,
            AnyFunction::L2($f) => $call,
            AnyFunction::L3($f) => $call,
        }
    };
}

impl<B: Buffer, L: Function<B>> Function<B> for AnyFunction<L> {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        each!(self, f => f.process(ingress, burst, out, laps))
    }

    #[inline]
    fn due(&mut self) -> bool {
        each!(self, f => Function::<B>::due(f))
    }

    #[inline]
    fn poll<C: Clock>(&mut self, burst: &mut Burst<B>, out: &mut Outputs<B>, laps: &mut Laps<'_, C>) -> Verdict {
        each!(self, f => f.poll(burst, out, laps))
    }

    fn release(&mut self) {
        each!(self, f => Function::<B>::release(f));
    }

    #[inline]
    fn held(&self) -> usize {
        each!(self, f => Function::<B>::held(f))
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        each!(self, f => Function::<B>::nodes(f, visit));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        each!(self, f => Function::<B>::counters(f, visit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_survive_their_text() {
        for text in ["null", "l2", "l2:macswap", "l3"] {
            assert_eq!(text.parse::<FunctionSpec>().unwrap().to_string(), text);
        }
        let err = "l4".parse::<FunctionSpec>().unwrap_err().to_string();
        assert_eq!(err, "function \"l4\": must be null, l2, l2:macswap or l3");
    }

    #[test]
    fn a_file_holds_routes() {
        let text = r#"
            kind = "l3"
            check_mac = true
            routes = [
                { prefix = "198.19.1.0/24", port = 1, dst_mac = "02:00:00:00:00:02" },
                { prefix = "2001:2:0:1::/64", port = 0, dst_mac = "02:00:00:00:00:01", src_mac = "02:00:00:00:01:00" },
            ]
        "#;
        let spec: FunctionSpec = toml::from_str(text).unwrap();
        let FunctionSpec::L3(config) = &spec else { panic!("{spec}") };
        assert!(config.check_mac && config.routes[1].src_mac == Some(MacAddr([2, 0, 0, 0, 1, 0])));
        assert_eq!(toml::from_str::<FunctionSpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
        assert!(matches!(spec.build(&[MacAddr::default(); 2]), Ok(AnyFunction::L3(_))));
        let err = spec.build(&[MacAddr::default()]).unwrap_err().to_string();
        assert_eq!(err, "routes[0].port \"1\": must be 0 to 0: there are 1 ports");
        for (bad, want) in [
            ("kind = 'l3'\nrouts = []", "unknown field `routs`"),
            (
                "kind = 'l3'\nroutes = [{ prefix = '1.2.3.4', port = 0, dst_mac = '02:00:00:00:00:02' }]",
                "198.19.0.0/16",
            ),
            ("kind = 'l2'\nswap = true", "unknown field `swap`"),
            ("kind = 'l9'", "unknown variant `l9`"),
        ] {
            let err = toml::from_str::<FunctionSpec>(bad).unwrap_err().to_string();
            assert!(err.contains(want), "{err}");
        }
    }
}
