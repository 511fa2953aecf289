//! The picture, from values of the protocol.

use std::time::{Duration, Instant};

use flow::protocol::{By, ExportTotals, Filter, Interface, Page, Row, TableTotals, Totals};
use flow::{Addresses, Key, Record, Way};
use ratatui::{backend::TestBackend, Terminal};

use crate::view;
use failure::Exit;
use flow::watch::{
    board::{Act, Board, Sort},
    link::Trouble,
    poll::{Look, News},
};

const AT: u64 = 1_700_000_000_000_000_000;

fn row(n: u8) -> Row {
    let way = Way { packets: 100 * u64::from(n), ip_bytes: 0, frame_bytes: 1_000_000 - u64::from(n), tcp_flags: 0x1b };
    let key = Key {
        addresses: Addresses::V4 { src: [192, 0, 2, n].into(), dst: [198, 51, 100, 255 - n].into() },
        sport: 40_000 + u16::from(n),
        dport: 443,
        protocol: 6,
        port: 0,
        scope: None,
        bottom: false,
    };
    let (first, last) = (AT - u64::from(n) * 1_000_000_000, AT);
    let record =
        Record { key, ingress: 0, tos: 0, forward: way, back: Way::default(), first, last, end: None, details: None };
    Row { record, packet_rate: f64::from(n % 7), bit_rate: f64::from(n) * 1e6 }
}

fn look(name: &str, flows: u8) -> Look {
    let interface = |port, name: &str| Interface {
        port,
        name: name.into(),
        packets: 123_456_789_012,
        bytes: 7_407_407_340_720,
        packet_rate: 14_880_952.4,
        bit_rate: 7_142_857_142.0,
        up: true,
        ..Interface::default()
    };
    let totals = Totals {
        at: AT,
        uptime_s: 3725.0,
        interfaces: vec![interface(0, "eth:left"), interface(1, "eth:right")],
        table: TableTotals {
            flows: 65_536,
            capacity: 1 << 20,
            created: 5_000_000,
            new_rate: 12_345.6,
            ..Default::default()
        },
        export: ExportTotals { records: 9_000, sent: 8_999, dropped: 1, ..ExportTotals::default() },
        sinks: Vec::new(),
    };
    let flows = (1..=flows).map(row).collect();
    let page = Page { flows, next: None, matching: Some(65_536) };
    Look { name: name.into(), totals, page: Some(Ok(page)), want: Default::default() }
}

fn board(loggers: usize) -> Board {
    let addresses: Vec<_> = (0..loggers).map(|n| format!("10.0.0.{n}:9395")).collect();
    let mut board = Board::new(&addresses, 1000, By::Bytes, Filter::default());
    for n in 0..loggers {
        board.update(n, News::Look(Box::new(look(&format!("logger{n}"), 100))));
    }
    board
}

fn drawn(board: &mut Board, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, board, Instant::now())).unwrap();
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content().iter().map(|c| c.symbol()).collect();
    cells.chunks(usize::from(width)).map(|line| line.concat().trim_end().to_owned()).collect()
}

#[track_caller]
fn says(screen: &[String], part: &str) {
    assert!(screen.iter().any(|line| line.contains(part)), "no {part:?} in\n{}", screen.join("\n"));
}

/// First source address of each line of flows.
fn sources(screen: &[String]) -> Vec<u8> {
    let source = |line: &String| line.strip_prefix("192.0.2.")?.split(':').next()?.parse().ok();
    screen.iter().filter_map(source).collect()
}

#[test]
fn one_logger_at_80x24() {
    let screen = drawn(&mut board(1), 80, 24);
    says(&screen, "linerate flows  29.762 Mpps  14.286 Gbit/s");
    says(&screen, "> logger0  10.0.0.0:9395");
    says(&screen, "connected, up 1h02m");
    // Both ports of the pair side by side, with exact counts where they fit.
    says(&screen, " 0 eth:left");
    let rates = screen.iter().find(|l| l.contains("eth:left")).unwrap();
    assert!(rates.contains("eth:right") && rates.matches("14.881 Mpps").count() == 2, "{rates}");
    says(&screen, "123.46G packets  7.4074TB");
    says(&drawn(&mut board(1), 120, 24), "123456789012 packets  7407407340720 bytes");
    says(&screen, "flows 65536 of 1.0486M (6.2%)  new 12.346 kflows/s");
    says(&screen, "exported 9000, sent 8999, dropped 1");
    says(&screen, "Flows of logger0: 1-14 of 100 largest of 65536 by bytes");
    says(&screen, "192.0.2.1:40001       198.51.100.254:443    tcp");
    assert_eq!(sources(&screen), (1..=14).collect::<Vec<_>>());
    assert!(screen[23].starts_with("q quit"), "{}", screen[23]);
}

#[test]
fn flows_are_sorted_by_what_is_chosen() {
    let mut b = board(1);
    for (sort, name, first) in [
        (Sort::PacketRate, "pps▼", [6, 13, 20]),
        (Sort::BitRate, "bps▼", [100, 99, 98]),
        (Sort::Age, "age▼", [100, 99, 98]),
        (Sort::Packets, "packets▼", [100, 99, 98]),
        (Sort::Bytes, "bytes▼", [1, 2, 3]),
    ] {
        b.act(Act::NextSort);
        assert_eq!(b.sort, sort);
        let screen = drawn(&mut b, 80, 24);
        says(&screen, name);
        assert_eq!(sources(&screen)[..3], first, "{name}");
    }
    b.act(Act::PreviousSort);
    assert_eq!((b.sort, b.want(0).by), (Sort::Packets, By::Packets));
}

#[test]
fn wide_terminals_have_more_columns() {
    let mut b = board(1);
    for (width, name) in [(83, "age"), (92, "packets"), (96, " in "), (103, "flags")] {
        let mut has = |width| drawn(&mut b, width, 24).iter().any(|l| l.starts_with("source") && l.contains(name));
        assert_eq!((has(width - 1), has(width)), (false, true), "{name} at {width}");
    }
}

#[test]
fn flows_scroll_from_end_to_end() {
    let mut b = board(1);
    drawn(&mut b, 80, 24);
    let mut after = |act| {
        b.act(act);
        let shown = sources(&drawn(&mut b, 80, 24));
        (shown[0], shown[shown.len() - 1])
    };
    assert_eq!(after(Act::Lines(1)), (2, 15));
    assert_eq!(after(Act::Lines(-5)), (1, 14));
    assert_eq!(after(Act::Pages(1)), (14, 27));
    assert_eq!(after(Act::End), (87, 100));
    assert_eq!(after(Act::Pages(1)), (87, 100));
    assert_eq!(after(Act::Home), (1, 14));
    // Fewer flows than before: what is shown moves up to them.
    b.act(Act::End);
    b.update(0, News::Look(Box::new(look("logger0", 3))));
    assert_eq!(sources(&drawn(&mut b, 80, 24)), [1, 2, 3]);
}

#[test]
fn twelve_loggers_in_one_screen() {
    let mut b = board(12);
    b.update(
        3,
        News::Down(
            Trouble { exit: Exit::Machine, text: "connection refused".into() },
            Instant::now() + Duration::from_secs(4),
        ),
    );
    b.update(7, News::Down(Trouble::refused("wrong token"), Instant::now() + Duration::from_secs(15)));
    let screen = drawn(&mut b, 80, 24);
    says(&screen, "10 of 12 loggers");
    for n in 0..12 {
        says(&screen, &format!("logger{n}"));
    }
    says(&screen, "retry 4 s");
    says(&screen, "refused");
    says(&screen, "14.881M 14.881M pps");
    says(&screen, "7.1429G 7.1429G bps");
    assert!(sources(&screen).len() >= 5, "{}", screen.join("\n"));
    let screen = drawn(&mut b, 200, 60);
    says(&screen, "reconnecting in 4 s: connection refused");
    says(&screen, "refused: wrong token; again in 15 s");
    assert_eq!(screen.iter().map(|l| l.matches("eth:left").count()).sum::<usize>(), 12);
    assert!(sources(&screen).len() >= 20);
}

#[test]
fn no_figure_is_cut_and_what_went_wrong_comes_first() {
    let mut b = board(1);
    let shown = |b: &mut Board, missed, not_ip, malformed| {
        let mut look = look("logger0", 9);
        let port = &mut look.totals.interfaces[0];
        (port.missed, port.not_ip, port.malformed) = (missed, not_ip, malformed);
        b.update(0, News::Look(Box::new(look)));
        drawn(b, 80, 24)[3].chars().take(39).collect::<String>().trim_end().to_owned()
    };
    assert_eq!(shown(&mut b, 0, 0, 0), "   123.46G packets  7.4074TB");
    assert_eq!(shown(&mut b, 609_123, 0, 0), "   123.46G packets  missed 609.12k");
    assert_eq!(shown(&mut b, 609_123, 5, 0), "   missed 609.12k  not IP 5");
    assert_eq!(shown(&mut b, 609_123, 5, 700_123), "   missed 609.12k  malformed 700.12k …");
}

#[test]
fn panels_are_labelled_where_there_is_room() {
    // Too little room for everything, enough for names.
    for (loggers, names) in [(3, 3), (5, 5)] {
        let mut b = board(loggers);
        let screen = drawn(&mut b, 80, 24);
        for part in ["eth:left", "eth:right", "records dropped 1"] {
            assert_eq!(screen.iter().map(|l| l.matches(part).count()).sum::<usize>(), names, "{}", screen.join("\n"));
        }
        assert!(sources(&screen).len() >= 6, "{}", screen.join("\n"));
    }
    // With few flows, lines are free for everything; with more it stays away once they came.
    let everything = |b: &mut Board| drawn(b, 80, 24).iter().filter(|l| l.starts_with(" ended")).count();
    let mut b = board(3);
    b.update(0, News::Look(Box::new(look("logger0", 2))));
    assert_eq!(everything(&mut b), 3);
    b.update(0, News::Look(Box::new(look("logger0", 9))));
    assert_eq!(everything(&mut b), 0);
    b.update(0, News::Look(Box::new(look("logger0", 2))));
    assert_eq!(everything(&mut b), 0);
}

#[test]
fn one_logger_is_chosen_or_all() {
    let mut b = board(12);
    assert_eq!((b.want(0).top, b.want(1).top), (1000, 0));
    b.act(Act::NextLogger);
    assert_eq!((b.want(0).top, b.want(1).top), (0, 1000));
    says(&drawn(&mut b, 80, 24), "Flows of logger1");
    b.act(Act::PreviousLogger);
    b.act(Act::PreviousLogger);
    says(&drawn(&mut b, 80, 24), "Flows of logger11");
    b.act(Act::AllOrOne);
    assert!((0..12).all(|n| b.want(n).top == 166));
    let screen = drawn(&mut b, 120, 24);
    says(&screen, "Flows of all loggers: 1-8 of 1200 largest of 786.43k by bytes");
    says(&screen, "logger7      192.0.2.1:40001");
    assert_eq!(b.flows().iter().filter(|f| f.logger == 3).count(), 100);
}

#[test]
fn a_filter_is_typed_refused_and_taken() {
    let mut b = board(1);
    let typed = |b: &mut Board, text: &str| text.chars().for_each(|c| b.act(Act::Type(c)));
    b.act(Act::EnterFilter);
    typed(&mut b, "port=dns\u{1b}");
    says(&drawn(&mut b, 120, 24), "filter: port=dns_");
    b.act(Act::Apply);
    says(&drawn(&mut b, 120, 24), "must be a port, 0 to 65535");
    (0..3).for_each(|_| b.act(Act::Erase));
    typed(&mut b, "53");
    b.act(Act::Apply);
    assert_eq!((b.entry.clone(), b.want(0).filter.port), (None, Some(53)));
    // Flows of another filter are not shown as those of this one, even if they come late.
    says(&drawn(&mut b, 80, 24), "Flows of logger0: requested");
    b.update(0, News::Look(Box::new(look("logger0", 3))));
    assert!(b.flows().is_empty());
    let mut right = look("logger0", 3);
    right.want = b.want(0);
    b.update(0, News::Look(Box::new(right)));
    says(&drawn(&mut b, 80, 24), "by bytes, only port=53");
    assert_eq!(b.flows().len(), 3);
}

#[test]
fn a_pause_holds_the_picture() {
    let mut b = board(1);
    b.act(Act::Pause);
    b.update(0, News::Look(Box::new(look("other", 3))));
    let screen = drawn(&mut b, 80, 24);
    says(&screen, "PAUSED");
    says(&screen, "logger0");
    b.act(Act::Pause);
    b.update(0, News::Look(Box::new(look("other", 3))));
    says(&drawn(&mut b, 80, 24), "> other");
}

#[test]
fn flows_stand_while_the_next_are_counted() {
    let mut b = board(1);
    let mut early = look("logger0", 0);
    (early.page, early.totals.uptime_s) = (None, 7.0);
    b.update(0, News::Early(Box::new(early)));
    let screen = drawn(&mut b, 80, 24);
    says(&screen, "up 7.0s");
    assert_eq!(sources(&screen).len(), 14);
}

#[test]
fn a_logger_that_dies_keeps_its_counters_and_comes_back() {
    let mut b = board(1);
    b.update(0, News::Down(Trouble::broken("it closed the connection"), Instant::now() + Duration::from_secs(2)));
    let screen = drawn(&mut b, 100, 24);
    says(&screen, "reconnecting in 2 s: it closed the connection");
    says(&screen, "flows 65536 of 1.0486M");
    says(&screen, "unknown, the logger does not answer");
    assert!(sources(&screen).is_empty());
    b.update(0, News::Look(Box::new(look("logger0", 9))));
    assert_eq!(sources(&drawn(&mut b, 100, 24)).len(), 9);
}

#[test]
fn no_terminal_is_too_small_and_no_figure_too_large() {
    for loggers in [1, 40] {
        let mut b = board(loggers);
        let mut huge = look(&"n".repeat(32), 20);
        let Some(Ok(page)) = &mut huge.page else { panic!() };
        for row in &mut page.flows {
            row.record.key.addresses = Addresses::V6 {
                src: std::net::Ipv6Addr::from(u128::MAX),
                dst: std::net::Ipv6Addr::from(u128::MAX - 1),
            };
            row.record.forward = Way { packets: u64::MAX, frame_bytes: u64::MAX, ..Way::default() };
            row.record.back = row.record.forward;
            (row.packet_rate, row.bit_rate) = (f64::MAX, -1.0);
            (row.record.first, row.record.key.scope) = (0, Some(u32::MAX));
        }
        huge.totals.at = u64::MAX;
        huge.totals.uptime_s = f64::MAX;
        huge.totals.table = TableTotals { flows: u64::MAX, ended: [u64::MAX; 5], ..TableTotals::default() };
        huge.totals.interfaces = (0..=255)
            .map(|port| Interface {
                port,
                packets: u64::MAX,
                missed: u64::MAX,
                bit_rate: f64::MAX,
                ..Interface::default()
            })
            .collect();
        b.update(0, News::Look(Box::new(huge)));
        for all in [false, true] {
            b.all = all;
            for width in [1, 2, 19, 20, 66, 80, 300] {
                for height in [1, 2, 3, 5, 8, 61] {
                    [Act::End, Act::NextSort, Act::NextLogger].into_iter().for_each(|act| b.act(act));
                    drawn(&mut b, width, height);
                }
            }
        }
    }
    let screen = drawn(&mut board(1), 20, 5);
    assert!(screen[0].starts_with("linerate flows"), "{screen:?}");
    says(&screen, "192.0.2.1:40001");
}
