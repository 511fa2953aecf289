//! Plans that are read, refused and printed.

use std::time::Duration;

use units::Load;

use super::*;

fn error(toml: &str) -> String {
    let error = Plan::from_toml(toml).and_then(Plan::validate).unwrap_err().to_string();
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

#[test]
fn an_empty_file_is_the_default_plan() {
    assert_eq!(Plan::from_toml("").unwrap(), Plan::default());
}

#[test]
fn a_plan_survives_its_own_text() {
    let full = r#"
        name = "two-vm"
        frame_sizes = [128, 1518]
        [traffic]
        direction = "both-ways"
        flows = 1000
        ip = "v6"
        vlan = [100]
        dst_mac = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
        src_ip = "2001:2::1"
        [[traffic.field]]
        field = "src_port"
        mode = "increment"
        start = 1024
        count = 100
        [[traffic.field]]
        field = "vlan"
        mode = "list"
        values = [100, 200]
        [search]
        method = "tst009"
        tolerated_loss = "0.1%"
        precision = 0.005
        duration = "90s"
        lower = "100kpps"
        upper = "80%"
        retries = 2
        retry_max_lost = 5000
        [trust]
        residual = "250ms"
        settle = 0
        [link]
        speed = "25G"
    "#;
    let plan = Plan::from_toml(full).unwrap();
    assert_eq!(plan.search.tolerated_loss.get(), 0.001);
    assert_eq!(plan.search.upper, Some(Load::LinePercent(80.0)));
    assert_eq!(plan.trust.settle, Duration::ZERO);
    assert_eq!(plan.traffic.field[0].start.as_deref(), Some("1024"));
    assert_eq!(plan.traffic.field[1].values, ["100", "200"]);
    for plan in [plan, Plan::default(), Plan::default().quick()] {
        let valid = plan.validate().unwrap();
        let text = valid.to_toml().unwrap();
        assert_eq!(Plan::from_toml(&text).unwrap(), valid.into_inner());
    }
}

#[test]
fn the_effective_plan_shows_every_default() {
    insta::assert_snapshot!(Plan::default().validate().unwrap().to_toml().unwrap(), @r#"
    name = "rfc2544"
    description = "Throughput by binary search, and latency at the throughput found"
    source = "RFC 2544 §26.1, §26.2"
    frame_sizes = [64, 128, 256, 512, 1024, 1280, 1518]
    tests = ["throughput", "latency"]

    [traffic]
    direction = "one-way"
    flows = 1
    ip = "v4"
    l4 = "udp"
    vlan = []
    mpls = []
    src_mac = []
    dst_mac = []
    src_ip = "198.18.0.2"
    dst_ip = "198.19.0.2"
    src_port = 49184
    dst_port = 7
    ttl = 64
    dscp = 0
    seed = 1

    [search]
    method = "rfc2544"
    tolerated_loss = 0.0
    precision = 0.005
    duration = "60s"
    lower = "0pps"
    retries = 0
    max_trials = 100
    timeout = "2h"

    [latency]
    enabled = true
    duration = "120s"

    [trust]
    max_repeats = 10
    offered_tolerance = 0.001
    duration_tolerance = 0.01
    max_gap = "10ms"
    placements = "separate"
    evidence = "slices"
    selftest = true
    ready_timeout = "5s"
    residual = "2s"
    settle = "5s"

    [link]

    [dut]
    # search.upper is not set: the line rate, or what the tester can do
    # link.speed is not set: what the ports report
    # dut.function is not set: l3, when no ports are given
    "#);
}

#[test]
fn errors_name_the_key_the_value_and_what_is_legal() {
    let all = [
        "[search]\nprecison = 1",
        "framesizes = [64]",
        "frame_sizes = [64,\n  63]",
        "frame_sizes = []",
        "frame_sizes = [64, 128, 64]",
        "frame_sizes = [64]\ntraffic.ip = \"v6\"",
        "frame_sizes = [64]\ntraffic.vlan = [5]\ntraffic.mpls = [16]",
        "frame_sizes = [64]\ntraffic.l4 = \"none\"\ntraffic.mpls = [16, 17, 18]",
        "traffic.l4 = \"sctp\"",
        "search.precision = 0",
        "search.precision = \"60%\"",
        "search.tolerated_loss = \"100%\"",
        "search.tolerated_loss = 1.5",
        "search.duration = \"fast\"",
        "search.duration = 0",
        "search.method = \"ndr\"",
        "search.lower = \"2Mpps\"\nsearch.upper = \"1Mpps\"",
        "search.lower = \"1Gbps\"\nsearch.upper = \"90%\"\nlink.speed = \"1G\"",
        "search.upper = \"2Gbps\"\nlink.speed = \"1G\"",
        "search.upper = 0",
        "search.retries = 2",
        "search.goals = \"csit\"",
        "search.warmup = \"1s\"",
        "search.method = \"tst009\"\nsearch.retry_max_lost = 9",
        "traffic.src_ip = \"2001:2::1\"",
        "traffic.dst_ip = \"198.18.0.1\"\ntraffic.ip = \"v6\"\nframe_sizes = [128]",
        "traffic.dst_ip = \"198.18.0\"",
        "traffic.flows = 0",
        "traffic.dscp = 64",
        "traffic.vlan = [4095]",
        "traffic.mpls = [15]",
        "traffic.src_mac = [\"02:00:00:00:00\"]",
        "traffic.direction = \"up\"",
        "trust.max_gap = \"1us\"",
        "trust.residual = 0",
        "link.speed = \"fast\"",
        "= 3",
    ];
    insta::assert_snapshot!(all.map(error).join("\n"), @r#"
    line 2, `precison = 1`: unknown field `precison`, expected one of `method`, `tolerated_loss`, `precision`, `duration`, `lower`, `upper`, `retries`, `retry_max_lost`, `max_trials`, `timeout`, `warmup`, `goals`
    line 1, `framesizes = [64]`: unknown field `framesizes`, expected one of `name`, `description`, `source`, `frame_sizes`, `tests`, `throughput`, `test_timeout`, `traffic`, `search`, `latency`, `trust`, `link`, `dut`, `frame_loss`, `back_to_back`, `recovery`, `reset`, `bursty`, `forwarding_rate`, `latency_profile`, `pdv`, `soak`, `addresses`, `sweep`, `needs`
    line 2, `63]`: frame size "63": must be 64 to 9216 bytes, FCS included
    frame_sizes = 0 sizes: must list 1 to 64 sizes
    frame_sizes = 64: is listed twice
    frame_sizes = 64: must be 84 to 9216 bytes to hold Ethernet, IPv6, UDP, the 18-byte stamp and FCS
    frame_sizes = 64: must be 72 to 9216 bytes to hold Ethernet, 1 VLAN, 1 MPLS, IPv4, UDP, the 18-byte stamp and FCS
    frame_sizes = 64: must be 68 to 9216 bytes to hold Ethernet, 3 MPLS, IPv4, the 18-byte stamp and FCS
    line 1, `traffic.l4 = "sctp"`: unknown variant `sctp`, expected one of `udp`, `tcp`, `none`
    search.precision = 0 %: must be 0.001% to 50%
    search.precision = 60 %: must be 0.001% to 50%
    search.tolerated_loss = 100 %: must be 0 % to below 100 %
    line 1, `search.tolerated_loss = 1.5`: ratio "1.5": must be 0 to 1 (0.005), or 0% to 100% (0.5%)
    line 1, `search.duration = "fast"`: duration "fast": must be like 60s, 500ms, 2m or 1h, at most 30 days
    search.duration = 0s: must be 10ms to 30 days
    line 1, `search.method = "ndr"`: unknown variant `ndr`, expected one of `rfc2544`, `tst009`, `mlrsearch`
    search.lower = 2Mpps: must be below search.upper = 1Mpps, 1.000 Mpps at 64 bytes
    search.lower = 1Gbps: must be below search.upper = 90%, 1.339 Mpps at 64 bytes
    search.upper = 2Gbps: must be at most the line rate, 1.488 Mpps at 64 bytes
    search.upper = 0pps: must be above 0 frames/s
    search.retries = 2: is loss verification: it needs search.method = "tst009"; with "rfc2544" it must be 0
    search.goals = (given): is for search.method = "mlrsearch": remove it, or choose that method
    search.warmup = 1s: is for search.method = "mlrsearch": remove it, or choose that method
    search.retry_max_lost = 9: contradicts search.retries = 0: it limits retries that are never made
    traffic.src_ip = 2001:2::1: contradicts traffic.ip = "v4": give an IPv4 address
    traffic.dst_ip = 198.18.0.1: contradicts traffic.ip = "v6": give an IPv6 address
    line 1, `traffic.dst_ip = "198.18.0"`: address "198.18.0": must be an IPv4 address like 198.18.0.2 or an IPv6 address like 2001:2:0:1::2
    traffic.flows = 0: must be 1 to 16777216
    traffic.dscp = 64: must be 0 to 63
    traffic.vlan = 4095: must be 1 to 4094
    traffic.mpls = 15: must be 16 to 1048575
    traffic.src_mac = 02:00:00:00:00: must be like 02:00:00:00:00:01
    line 1, `traffic.direction = "up"`: unknown variant `up`, expected `one-way` or `both-ways`
    trust.max_gap = 1us: must be 20us to 30 days
    trust.residual = 0s: must be 1ms to 30 days
    line 1, `link.speed = "fast"`: link speed "fast": must be 1M to 10T bit/s, written like 10G, 2.5Gbps or 100M
    line 1: not TOML (invalid key): name a plan, or a file like those of --print-config
    "#);
}

#[test]
fn mlrsearch_takes_goals_and_refuses_what_they_say() {
    let all = [
        "precision = \"1%\"",
        "tolerated_loss = \"0.1%\"",
        "duration = \"1s\"",
        "retries = 1",
        "warmup = \"1ms\"",
        "goals = \"ndr\"",
        "goals = 3",
        "goals = []",
        "[[search.goals]]\nfinal_duration = \"1ms\"",
        "[[search.goals]]\nwidth = \"0.1%\"\nloss_ratio = \"1%\"",
        "[[search.goals]]\nduration = \"1s\"",
    ];
    let with = |key: &str| error(&format!("[search]\nmethod = \"mlrsearch\"\n{key}"));
    insta::assert_snapshot!(all.map(with).join("\n"), @r#"
    search.precision = 1%: belongs to each goal with search.method = "mlrsearch": leave out search.precision, and set width in search.goals
    search.tolerated_loss = 0.1%: belongs to each goal with search.method = "mlrsearch": leave out search.tolerated_loss, and set loss_ratio in search.goals
    search.duration = 1s: belongs to each goal with search.method = "mlrsearch": leave out search.duration, and set final_duration in search.goals
    search.retries = 1: is loss verification: it needs search.method = "tst009"; with "mlrsearch" it must be 0
    search.warmup = 1ms: must be 10ms to 30 days
    search.goals = ndr: must be one of csit, rfc2544, tst009
    line 3, `goals = 3`: invalid type: integer `3`, expected one of csit, rfc2544, tst009 in quotes, or [[search.goals]] tables
    search.goals = 0: must be 1 to 16 search goals
    search.goal "NDR": initial_duration = 1ms: must be 10ms to 30 days
    search.goal "NDR": width = 0.1 %: must be no less than loss_ratio = 1 %: the goals' throughputs could cross
    line 4, `duration = "1s"`: unknown field `duration`, expected one of `name`, `final_duration`, `duration_sum`, `loss_ratio`, `exceed_ratio`, `initial_duration`, `width`
    "#);
}

#[test]
fn a_plan_of_goals_shows_them_and_nothing_they_replace() {
    let plan = Plan::from_toml("search.method = 'mlrsearch'").unwrap();
    let valid = plan.clone().validate().unwrap();
    assert_eq!((&valid.search.goals, valid.search.max_trials), (&Some(Goals::default()), Some(400)));
    for plan in [plan.clone(), plan.quick()] {
        let valid = plan.validate().unwrap();
        let text = valid.to_toml().unwrap();
        let search = text.split_once("[search]").unwrap().1.split_once("[latency]").unwrap().0;
        assert!(
            !["\nprecision", "\nduration =", "\ntolerated_loss"].iter().any(|key| search.contains(key)),
            "{search}"
        );
        assert!(valid.to_json()["search"].get("precision").is_none());
        assert_eq!(Plan::from_toml(&text).unwrap(), valid.clone().into_inner());
        let set = valid.search.goals.clone().unwrap().set().unwrap();
        assert_eq!(set.goals().len(), 2);
    }
}

#[test]
fn what_is_no_number_is_in_no_range() {
    for table in
        ["[recovery]\noverload_percent = nan", "[pdv]\nload_percent = nan", "[latency_profile]\nloads_percent = [nan]"]
    {
        let test = table[1..].split(']').next().unwrap().replace('_', "-");
        let plan = Plan::from_toml(&format!("tests = ['{test}']\n{table}")).unwrap();
        let error = plan.validate().unwrap_err();
        assert!(matches!(&error, PlanError::Value { value, .. } if value == "NaN"), "{error:?}");
    }
}

#[test]
fn what_was_given_counts_even_if_it_is_the_default() {
    let with = |key: &str| Plan::from_toml(&format!("[search]\nmethod = \"mlrsearch\"\n{key}"));
    let defaults = toml::to_string(&SearchPlan::default()).unwrap();
    let mut errors = Vec::new();
    for (key, _) in SearchPlan::OF_GOALS {
        let line = defaults.lines().find(|line| line.starts_with(key)).unwrap();
        let error = with(line).unwrap_err();
        assert!(matches!(&error, PlanError::Value { key: k, .. } if *k == format!("search.{key}")), "{error:?}");
        errors.push(error.to_string());
        assert!(Plan::from_toml(&format!("[search]\n{line}")).is_ok());
    }
    insta::assert_snapshot!(errors.join("\n"), @r#"
    search.tolerated_loss = 0.0: belongs to each goal with search.method = "mlrsearch": leave out search.tolerated_loss, and set loss_ratio in search.goals
    search.precision = 0.005: belongs to each goal with search.method = "mlrsearch": leave out search.precision, and set width in search.goals
    search.duration = 60s: belongs to each goal with search.method = "mlrsearch": leave out search.duration, and set final_duration in search.goals
    "#);
    assert_eq!(with("max_trials = 100").unwrap().validate().unwrap().search.max_trials, Some(100));
    assert_eq!(Plan::default().validate().unwrap().search.max_trials, Some(100));
}

#[test]
fn quick_goals_are_short() {
    let mut plan = Plan::default();
    plan.search.method = Method::Mlrsearch;
    plan.search.goals = Some(Goals::Named("tst009".to_owned()));
    let set = plan.quick().validate().unwrap().search.goals.clone().unwrap().set().unwrap();
    let goal = &set.goals()[0];
    assert_eq!((goal.initial_s(), goal.final_s(), goal.sum_s(), goal.width.get()), (0.01, 0.1, 0.2, 0.01));
}

#[test]
fn fields_are_held_against_their_mode() {
    let all = [
        "field = \"tos\"\nmode = \"random\"\ncount = 5",
        "field = \"raw@4\"\nmode = \"random\"\ncount = 5",
        "field = \"src_port\"\nmode = \"increment\"",
        "field = \"src_port\"\nmode = \"increment\"\ncount = 65537",
        "field = \"src_port\"\nmode = \"random\"\ncount = 5\nstep = 2",
        "field = \"src_ip\"\nmode = \"mask\"\nmask = \"0000XXXX\"",
        "field = \"src_ip\"\nmode = \"mask\"\nmask = \"0000101000000000YYYY000000000001\"",
        "field = \"src_ip\"\nmode = \"list\"",
        "field = \"vlan\"\nmode = \"random\"\ncount = 5",
    ];
    let with = |field: &str| error(&format!("[[traffic.field]]\n{field}"));
    insta::assert_snapshot!(all.map(with).join("\n"), @r#"
    traffic.field[0].field = "tos": must be src_mac, dst_mac, src_ip, dst_ip, src_port, dst_port, vlan, mpls, or raw@OFFSET (mode = "mask" only)
    traffic.field[0].field = "raw@4": must be src_mac, dst_mac, src_ip, dst_ip, src_port, dst_port, vlan, mpls, or raw@OFFSET (mode = "mask" only)
    traffic.field[0].count = (absent): is needed by mode = "increment"
    traffic.field[0].count = 65537: must be 1 to 65536
    traffic.field[0].step = (given): is not used by mode = "random": remove it
    traffic.field[0].mask = "0000XXXX": must be 32 characters 0, 1 or X, one a bit
    traffic.field[0].mask = "0000101000000000YYYY000000000001": must be 32 characters 0, 1 or X, one a bit
    traffic.field[0].values = (absent): is needed by mode = "list"
    traffic.field[0].field = "vlan": needs traffic.vlan, which is empty
    "#);
    for good in [
        "field = \"src_ip\"\nmode = \"mask\"\nmask = \"0000101000000000XXXX000000000001\"",
        "field = \"raw@50\"\nmode = \"mask\"\nmask = \"XXXX0000\"",
        "field = \"dst_ip\"\nmode = \"increment\"\nstart = \"198.19.0.2\"\ncount = 256\nstep = 3",
    ] {
        Plan::from_toml(&format!("[[traffic.field]]\n{good}")).unwrap().validate().unwrap();
    }
}

#[test]
fn without_a_transport_header_64_bytes_hold_a_label_and_no_port() {
    let plan = "frame_sizes = [64]\ntraffic.mpls = [16]";
    insta::assert_snapshot!(error(plan), @"frame_sizes = 64: must be 68 to 9216 bytes to hold Ethernet, 1 MPLS, IPv4, UDP, the 18-byte stamp and FCS");
    let plan = format!("{plan}\ntraffic.l4 = \"none\"");
    let valid = Plan::from_toml(&plan).unwrap().validate().unwrap();
    assert_eq!(Plan::from_toml(&valid.to_toml().unwrap()).unwrap().traffic.l4, L4::None);
    let mut errors = Vec::new();
    for port in ["src_port", "dst_port"] {
        let field = format!("[[traffic.field]]\nfield = \"{port}\"\nmode = \"increment\"\ncount = 2");
        errors.push(error(&format!("{plan}\n{field}")));
    }
    insta::assert_snapshot!(errors.join("\n"), @r#"
    traffic.field[0].field = "src_port": needs a transport header, and traffic.l4 = "none" has none
    traffic.field[0].field = "dst_port": needs a transport header, and traffic.l4 = "none" has none
    "#);
}

#[test]
fn quick_is_short_and_says_so() {
    let quick = Plan::default().quick().validate().unwrap();
    assert_ne!(quick.name, Plan::default().name);
    insta::assert_snapshot!(format!("{}: {}", quick.name, quick.description), @"rfc2544 (quick): Throughput by binary search, and latency at the throughput found (quick: short trials, not the standard's durations)");
    let worst = quick.search.timeout.as_secs_f64() + quick.latency.duration.as_secs_f64();
    assert!(worst * quick.frame_sizes.len() as f64 <= 110.0, "{worst} s a size");
}

#[test]
fn tests_that_need_the_throughput_bring_its_search() {
    let settled = |toml: &str| Plan::from_toml(toml).unwrap().validate().unwrap();
    let plan = settled("tests = ['frame-loss', 'back-to-back']");
    assert_eq!(plan.tests, [Test::Throughput, Test::FrameLoss, Test::BackToBack]);
    assert!(!plan.wants_latency(), "no latency trial was asked for");
    assert_eq!((plan.frame_loss.clone(), plan.recovery.clone()), (Some(FrameLossPlan::default()), None));
    assert_eq!(plan.procedures().collect::<Vec<_>>(), [Test::FrameLoss, Test::BackToBack]);
    assert_eq!(settled("tests = ['frame-loss', 'bursty']").tests.len(), 2);
    assert_eq!(settled("tests = ['recovery']\nthroughput = '1Mpps'").tests, [Test::Recovery]);
    assert_eq!(settled("tests = ['soak']\nsoak.load = '1Mpps'").tests, [Test::Soak]);
    let again = Plan::from_toml(&plan.to_toml().unwrap()).unwrap().validate().unwrap();
    assert_eq!(again, plan);
}

#[test]
fn quick_shortens_every_test_that_runs_and_stays_valid() {
    let all: Vec<_> = Test::ALL.iter().filter(|t| !t.is_of_addresses()).map(|t| format!("'{t}'")).collect();
    let all = all.join(", ");
    let plan = Plan::from_toml(&format!("tests = [{all}]")).unwrap();
    let (full, quick) = (plan.clone().validate().unwrap(), plan.quick().validate().unwrap());
    let text = full.to_toml().unwrap();
    assert_eq!(Plan::from_toml(&text).unwrap(), full.into_inner());
    for quick in [quick.back_to_back.clone().unwrap().limit, quick.pdv.clone().unwrap().duration] {
        assert!(quick <= Duration::from_secs(1));
    }
}

#[test]
fn tables_of_tests_name_the_key_the_value_and_what_is_legal() {
    let all = [
        "tests = []",
        "tests = ['soak', 'soak']",
        "tests = ['jitter']",
        "tests = ['throughput']\nthroughput = '1Mpps'",
        "tests = ['latency']\nthroughput = '1Mpps'",
        "tests = ['recovery']\nthroughput = 0",
        "tests = ['frame-loss']\nframe_loss.step = '20%'",
        "tests = ['back-to-back']\nback_to_back.limit = '31s'",
        "tests = ['back-to-back']\nback_to_back.retry_max_lost = 5",
        "tests = ['recovery']\nrecovery.overload_percent = 90",
        "tests = ['bursty']\nbursty.burst_sizes = [16, 1]",
        "tests = ['bursty']\nbursty.burst_sizes = []",
        "tests = ['latency-profile']\nlatency_profile.loads_percent = [0.0]",
        "tests = ['pdv']\npdv.window = '10m'",
        "tests = ['soak']\nsoak.segment = '10h'",
        "tests = ['reset']\nreset.at = '60s'",
        "tests = ['reset']\nreset.command = ['']",
        "test_timeout = 0",
        "tests = ['soak']\nsoak.duration = '30h'\ntest_timeout = '24h'",
    ];
    insta::assert_snapshot!(all.map(error).join("\n"), @r#"
    tests = []: must name one test at least, such as "throughput"
    tests = soak: is listed twice
    line 1, `tests = ['jitter']`: unknown variant `jitter`, expected one of `throughput`, `latency`, `frame-loss`, `back-to-back`, `recovery`, `reset`, `bursty`, `forwarding-rate`, `latency-profile`, `pdv`, `soak`, `address-caching`, `address-learning`
    throughput = 1Mpps: contradicts the test "throughput": leave one out
    throughput = 1Mpps: cannot go with the test "latency", which is the search's own: use "latency-profile"
    throughput = 0pps: must be above 0 frames/s
    frame_loss.step = 20 %: must be 0.1% to 10%
    back_to_back.limit = 31s: must be at most 30s (RFC 9004 §6.2)
    back_to_back.retry_max_lost = 5: contradicts back_to_back.retries = 0: it limits retries that are never made
    recovery.overload_percent = 90: must be 101 to 10000
    bursty.burst_sizes = 1: must be 2 to 1000000
    bursty.burst_sizes = 0 sizes: must list 1 to 16 sizes
    latency_profile.loads_percent = 0: must be 0.01 to 100
    pdv.window = 600s: must be at most pdv.duration
    soak.segment = 10h: must be at most soak.duration
    reset.at = 60s: must be above 0 and before the end of reset.duration
    reset.command = 1 words: must be a program and at most 255 arguments, such as ["systemctl", "restart", "vswitch"]
    test_timeout = 0s: must be 10ms to 30 days
    test_timeout = 24h: must be at least soak.duration = 30h, and some more for its waits: or leave it out
    "#);
}

#[test]
fn the_time_of_a_test_follows_the_soak_where_none_is_given() {
    let hours = |toml: &str| Plan::from_toml(toml).unwrap().validate().unwrap().time_of_a_test().as_secs() / 3600;
    assert_eq!(hours("tests = ['soak']"), 24);
    assert_eq!(hours("tests = ['soak']\nsoak.duration = '100h'"), 200);
    assert_eq!(hours("tests = ['soak']\nsoak.duration = '100h'\ntest_timeout = '110h'"), 110);
}

#[test]
fn an_old_spelling_is_refused_with_the_new_one() {
    let of = |text: &str| error(&format!("[trust]\nplacements = '{text}'"));
    insta::assert_snapshot!(["apart", "together", "both"].map(of).join("\n"), @r#"
    line 2, `placements = 'apart'`: trust.placements = "apart" is now "separate"
    line 2, `placements = 'together'`: trust.placements = "together" is now "combined"
    line 2, `placements = 'both'`: trust.placements = "both": must be "separate" or "combined"
    "#);
}
