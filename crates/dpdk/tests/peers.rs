//! Ports to another process: `dpdk-testpmd` joins two of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use common::{eal_with, full, open, pass, pool};
use dpdk::{DpdkError, Eal, Mbuf, Memory, Mempool, Port, PortConfig, RxQueue, TxQueue};
use packet::{Alloc, Buffer, Burst, Rx, Tx};

/// A test uses both cores of a small machine, so they take turns.
fn test_eal() -> (&'static Eal, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (eal_with(Memory::NoHuge { mib: 128 }), turn)
}

struct Testpmd(Child);

impl Testpmd {
    fn start(dir: &Path, vdevs: [String; 2]) -> Self {
        // Ends with the thread that started it, even if no destructor runs.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "dpdk-testpmd"]);
        command.args(["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf", "--iova-mode=va"]);
        command.args(["--lcores=0,1", &format!("--file-prefix=peer{}", std::process::id())]);
        command.args(vdevs.iter().map(|v| format!("--vdev={v}")));
        command.args(["--", "--total-num-mbufs=8192", "--forward-mode=io", "--auto-start", "--no-mlockall"]);
        command.args(["--stats-period=1"]);
        let log = std::fs::File::create(dir.join("testpmd.log")).unwrap();
        command.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log);
        Self(command.spawn().expect("dpdk-testpmd; install it with: apt-get install dpdk-dev"))
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::fs::remove_dir_all(format!("/var/run/dpdk/peer{}", std::process::id()));
    }
}

fn wait_for(paths: &[&Path]) {
    let end = Instant::now() + Duration::from_secs(20);
    while !paths.iter().all(|p| p.exists()) {
        assert!(Instant::now() < end, "testpmd makes no socket");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The peer's link is up before it forwards: sends foreign frames until one comes through.
fn warm_up(pool: &Mempool, tx: &mut TxQueue, rx: &mut RxQueue) {
    let (mut out, mut into) = (Burst::<Mbuf>::new(), Burst::<Mbuf>::new());
    let end = Instant::now() + Duration::from_secs(20);
    while rx.rx(&mut into) == 0 {
        assert!(Instant::now() < end, "nothing comes through");
        pool.handle().alloc(&mut out, 1, 60);
        out.iter_mut().for_each(|f| f.data_mut().fill(0));
        tx.tx(&mut out);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Frames through the peer both ways; then the peer dies under load, and nothing else may.
fn through(pool: &Mempool, mut a: Port, mut b: Port, testpmd: Testpmd) {
    for port in [&a, &b] {
        assert!(port.wait_link_up(Duration::from_secs(20)), "{port:?} is down; {}", dpdk::log_tail());
    }
    let (mut at, mut ar) = (a.take_tx(0).unwrap(), a.take_rx(0).unwrap());
    let (mut bt, mut br) = (b.take_tx(0).unwrap(), b.take_rx(0).unwrap());
    warm_up(pool, &mut at, &mut br);
    warm_up(pool, &mut bt, &mut ar);
    pass(pool, &mut at, &mut br, 2000, 1514);
    pass(pool, &mut bt, &mut ar, 2000, 1514);

    let mut testpmd = Some(testpmd);
    let start = Instant::now();
    let (mut alloc, mut burst) = (pool.handle(), Burst::<Mbuf>::new());
    while start.elapsed() < Duration::from_millis(600) {
        if start.elapsed() > Duration::from_millis(200) {
            testpmd = None;
        }
        alloc.alloc(&mut burst, 32, 1000);
        at.tx(&mut burst);
        Mbuf::discard(&mut burst);
        br.rx(&mut burst);
        Mbuf::discard(&mut burst);
        let _ = (a.link(), b.link());
    }
    assert!(testpmd.is_none());
    let end = Instant::now() + Duration::from_secs(10);
    while a.link().up || b.link().up {
        assert!(Instant::now() < end, "{:?} {:?}", a.link(), b.link());
        std::thread::sleep(Duration::from_millis(10));
    }
    drop((at, ar, bt, br, a, b));
    full(pool);
}

#[test]
fn testpmd_listens_on_memif() {
    let (eal, _turn) = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let [p, q] = ["p", "q"].map(|n| dir.path().join(n));
    let vdev =
        |i: usize, path: &Path| format!("net_memif{i},role=server,id=0,socket={},socket-abstract=no", path.display());
    let testpmd = Testpmd::start(dir.path(), [vdev(0, &p), vdev(1, &q)]);
    wait_for(&[&p, &q]);
    let pool = pool(eal, 8191);
    let a = open(eal, &format!("memif:{}", p.display()), &pool);
    let b = open(eal, &format!("memif:{}", q.display()), &pool);
    through(&pool, a, b, testpmd);
}

#[test]
fn testpmd_connects_to_our_memif() {
    let (eal, _turn) = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let [p, q] = ["p", "q"].map(|n| dir.path().join(n));
    let pool = pool(eal, 8191);
    let a = open(eal, &format!("memif:{},role=server", p.display()), &pool);
    let b = open(eal, &format!("memif:{},role=server", q.display()), &pool);
    let vdev =
        |i: usize, path: &Path| format!("net_memif{i},role=client,id=0,socket={},socket-abstract=no", path.display());
    let testpmd = Testpmd::start(dir.path(), [vdev(0, &p), vdev(1, &q)]);
    through(&pool, a, b, testpmd);
    assert!(!p.exists() && !q.exists());
}

#[test]
fn a_socket_on_which_nobody_listens_is_named() {
    let (eal, _turn) = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("left");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let pool = pool(eal, 1023);
    for kind in ["memif", "virtio"] {
        let spec = format!("{kind}:{}", path.display()).parse().unwrap();
        let error = Port::open(eal, &spec, &PortConfig::new(&pool)).unwrap_err();
        assert!(error.machine_lacks(), "{error}");
        assert!(matches!(&error, DpdkError::SocketStale { path: named, .. } if *named == path), "{error}");
    }
    full(&pool);
}

#[test]
fn testpmd_is_the_switch_and_we_the_guest_that_listens() {
    let (eal, _turn) = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let [p, q] = ["p", "q"].map(|n| dir.path().join(n));
    let vdev = |i: usize, path: &Path| format!("net_vhost{i},iface={},client=1", path.display());
    let testpmd = Testpmd::start(dir.path(), [vdev(0, &p), vdev(1, &q)]);
    let pool = pool(eal, 8191);
    let a = open(eal, &format!("virtio:{},server=1", p.display()), &pool);
    let b = open(eal, &format!("virtio:{},server=1", q.display()), &pool);
    through(&pool, a, b, testpmd);
    assert!(!p.exists() && !q.exists());
}

#[test]
fn testpmd_is_the_guest_and_we_the_switch() {
    let (eal, _turn) = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let [p, q] = ["p", "q"].map(|n| dir.path().join(n));
    let pool = pool(eal, 8191);
    let config = PortConfig::new(&pool);
    let open = |path: &Path| Port::open(eal, &format!("vhost:{}", path.display()).parse().unwrap(), &config).unwrap();
    let (a, b) = (open(&p), open(&q));
    let vdev = |i: usize, path: &Path| format!("virtio_user{i},path={}", path.display());
    let testpmd = Testpmd::start(dir.path(), [vdev(0, &p), vdev(1, &q)]);
    through(&pool, a, b, testpmd);
}
