use super::*;

#[test]
fn a_mixed_burst_keeps_its_order_on_every_port() {
    let ip = |way, n| arriving(&[], &ip4(n, way));
    let swap = |label, n| arriving(&[(label, 0, 64)], &ip4(n, 0));
    let frames = [
        ip(1, 1),
        swap(16, 2),
        arriving(&[(0, 0, 64)], &ip4(3, 1)),
        swap(17, 4),
        ip(0, 5),
        swap(22, 6),
        ip(2, 7),
        swap(16, 8),
        ip(3, 9),
        vec![2; 13],
    ];
    let mut function = mpls();
    let ran = run(&mut function, 0, &frames);
    assert_eq!(ran.dispatch, Dispatch::Split);
    assert_eq!(ran.out[0], [ip(0, 5), leaving(0, &[(16, 0, 63)], &ip4(4, 0))]);
    let [a, b] = [2, 8].map(|n| leaving(1, &[(17, 0, 63)], &ip4(n, 0)));
    assert_eq!(ran.out[1], [ip(1, 1), ip(1, 64), a.clone(), b]);
    assert_eq!(dropped(&ran), [(DropReason::NoRoute, 2), (DropReason::BlackHole, 1)]);
    assert_eq!(function.inner.seen.len(), 6);
    let nodes = [&function.nodes[0], &function.nodes[1], &function.nodes[2], &function.inner.node];
    assert_eq!(nodes.map(|node| (node.calls, node.vectors)), [(1, 10), (1, 5), (1, 5), (1, 6)]);
    // The inner function's whole burst leaves by one port, beside labels or the dropped.
    let ran = run(&mut mpls(), 0, &[ip(1, 1), swap(16, 2)]);
    assert_eq!((ran.dispatch, &ran.out[1]), (Dispatch::Split, &vec![ip(1, 1), a]));
    let ran = run(&mut mpls(), 0, &[swap(22, 1), ip(1, 1), ip(1, 2)]);
    assert_eq!((ran.dispatch, &ran.out[1]), (Dispatch::All(1), &vec![ip(1, 1), ip(1, 2)]));
    // Of labels alone, by two ports.
    let ran = run(&mut mpls(), 0, &[swap(16, 1), swap(17, 2), swap(18, 3)]);
    assert_eq!(ran.out.map(|frames| frames.len()), [1, 2, 0]);
}

#[test]
fn a_burst_without_labels_goes_straight_through() {
    let mut function = mpls();
    let mut arp = arriving(&[], &[0; 28]);
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    arp[41] = 1;
    let frames = [arriving(&[], &ip4(9, 1)), arp, frame(MACS[0], SENDER, Some(7), &[], &ip6(3, 1))];
    let ran = run(&mut function, 0, &frames);
    assert_eq!((ran.dispatch, &ran.out[1]), (Dispatch::All(1), &frames.to_vec()));
    assert_eq!([0, 1].map(|i| (function.nodes[i].calls, function.nodes[i].vectors)), [(1, 3), (0, 0)]);
    // The rest of the trait is the inner function's.
    let pool = HeapPool::new(1, 64);
    function.inner.held.extend(pool.frame(&[1]));
    assert!(function.due() && Function::<HeapBuf>::held(&function) == 1);
    let (clock, mut burst, mut out) = (FakeClock::new(1), Burst::new(), Outputs::new(1));
    assert_eq!(function.poll(&mut burst, &mut out, &mut NodeTimer::start(&clock, 0, false)), Dispatch::All(0));
    assert!(burst.len() == 1 && !function.due());
    Function::<HeapBuf>::release(&mut function);
    assert!(function.inner.seen.is_empty());
    let mut counters = Vec::new();
    Function::<HeapBuf>::counters(&function, &mut |name, n| counters.push((name, n)));
    assert_eq!(counters, [("stub", 7)]);
}

#[test]
fn new_tables_are_seen_at_the_next_burst_and_old_ones_let_go() {
    let mut shared = Shared::new(tables());
    let mut function = mpls();
    function.tables = shared.reader();
    let swap = [arriving(&[(16, 0, 64)], &ip4(9, 0))];
    assert_eq!(run(&mut function, 0, &swap).out[1].len(), 1);
    shared.publish(Tables::bare(&MACS));
    assert!(!shared.reap());
    assert!(!function.due() && shared.reap(), "a poll without frames lets go");
    assert_eq!(dropped(&run(&mut function, 0, &swap)), [(DropReason::MplsNoLabel, 1)]);
}

#[test]
fn equal_cost_paths_share_flows_and_keep_each_on_one() {
    let flow = |label, n: u8, label_below| {
        let mut packet = ip4(64, 0);
        packet[15] = n;
        arriving(&[(label, 0, 64), (label_below, 0, 64)], &packet)
    };
    for label in [35, 36] {
        for frames in [
            (0..64).map(|n| flow(label, n, 500)).collect::<Vec<_>>(),
            (0..64).map(|n| flow(label, 0, 500 + n)).collect(),
        ] {
            let ran = run(&mut mpls(), 0, &frames);
            let [a, b] = [ran.out[0].len(), ran.out[1].len()];
            assert!(a + b == 64 && a.min(b) >= 16, "{a} and {b}");
        }
        let ran = run(&mut mpls(), 0, &vec![flow(label, 3, 500); 64]);
        assert!(matches!(ran.dispatch, Dispatch::All(_)));
    }
    // TTL and EXP are no part of a flow.
    let hash = |ttl, exp| input::flow_hash(&arriving(&[(35, exp, ttl)], &ip6(1, 0))[14..]);
    assert_eq!(hash(64, 0), hash(3, 7));
}
