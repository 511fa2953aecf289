//! Errors of a plan that flags made wrong, in the words that were typed.

use measure::plan::PlanError;

/// Sections of a plan whose keys have flags without the name of the section.
const SECTIONS: [&str; 4] = ["search.", "trust.", "traffic.", "link."];

/// The error with flags instead of plan keys. `frame_sizes`: the flag for the sizes.
pub fn as_flags(e: &PlanError, frame_sizes: &str) -> String {
    let flag = |key: &str| {
        let key = key.split('[').next().unwrap_or(key);
        match key {
            "frame_sizes" => frame_sizes.to_owned(),
            _ => {
                let name = SECTIONS.iter().find_map(|section| key.strip_prefix(section)).unwrap_or(key);
                format!("--{}", name.replace(['_', '.'], "-"))
            }
        }
    };
    let PlanError::Value { key, value, legal } = e else { return e.to_string() };
    // A value may contradict another flag. Goals of one's own are written in a plan alone.
    let is_key = |word: &str| word != "search.goals" && SECTIONS.iter().any(|section| word.starts_with(section));
    let mut words: Vec<String> = Vec::new();
    let mut after_flag = false;
    for word in legal.split(' ').filter(|word| !word.is_empty()) {
        // `search.upper = 1Mpps` is `--upper 1Mpps`.
        if !(after_flag && word == "=") {
            words.push(if is_key(word) { flag(word) } else { word.to_owned() });
        }
        after_flag = is_key(word);
    }
    format!("{} {value}: {}", flag(key), words.join(" "))
}

#[cfg(test)]
mod tests {
    use measure::plan::Plan;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_as_it_was_typed() {
        let wrong = [
            "search.duration = '1ms'",
            "trust.residual = '0s'",
            "frame_sizes = [64]\ntraffic.ip = 'v6'",
            "traffic.src_ip = '2001:2::1'",
            "[[traffic.field]]\nfield = 'vlan'\nmode = 'random'",
            "search.retries = 2",
            "latency.duration = '1ms'",
        ];
        let of = |toml| as_flags(&Plan::from_toml(toml).unwrap().validate().unwrap_err(), "--frame-size");
        insta::assert_snapshot!(wrong.map(of).join("\n"), @r#"
        --duration 1ms: must be 10ms to 30 days
        --residual 0s: must be 1ms to 30 days
        --frame-size 64: must be 84 to 9216 bytes to hold Ethernet, IPv6, UDP, the 18-byte stamp and FCS
        --src-ip 2001:2::1: contradicts --ip "v4": give an IPv4 address
        --field "vlan": needs --vlan, which is empty
        --retries 2: is loss verification: it needs --method "tst009"; with "rfc2544" it must be 0
        --latency-duration 1ms: must be 10ms to 30 days
        "#);
    }
}
