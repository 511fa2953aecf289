/* The functions of DPDK that Linerate needs, in plain C types. Implemented in shim.c (DPDK) and host.c (the kernel). */
#ifndef LINERATE_SHIM_H
#define LINERATE_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ethdev.h>

/* Offsets and constants, computed here so that no field path appears in Rust. */
enum {
	LR_MBUF_OFF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	LR_MBUF_OFF_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	LR_MBUF_OFF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	LR_MBUF_OFF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	LR_MBUF_OFF_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	LR_MBUF_OFF_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
	LR_MBUF_SIZE = sizeof(struct rte_mbuf),
	LR_HEADROOM = RTE_PKTMBUF_HEADROOM,
	LR_MAX_PORTS = RTE_MAX_ETHPORTS,
	LR_MAX_LCORE = RTE_MAX_LCORE,
	LR_MAX_QUEUES = 64,
	LR_XSTAT_NAME = RTE_ETH_XSTATS_NAME_SIZE,
};
#define LR_LCORE_NONE UINT32_MAX

/* ---- the environment ---- */
const char *lr_version(void);        /* of the library at run time, "DPDK 22.11.11" */
int lr_version_header_year(void);    /* of the headers compiled against */
int lr_version_header_month(void);
int lr_eal_init(int argc, char **argv); /* rte_eal_init with stderr captured; negative rte_errno on failure */
int lr_eal_cleanup(void);
void lr_at_exit(void (*f)(void)); /* run at a normal exit of the process */
const char *lr_runtime_dir(void);
int lr_errno(void);
const char *lr_strerror(int err);
uint64_t lr_tsc(void);
uint64_t lr_tsc_hz(void);

/* ---- the log: nothing goes to the terminal, the last lines are kept ---- */
void lr_log_capture(void);
void lr_log_mark(void);              /* forgets the last error line */
size_t lr_log_error(char *out, size_t room); /* first error line since the mark; its length */
size_t lr_log_tail(char *out, size_t room);  /* the last few KiB */

/* ---- lcores ---- */
uint32_t lr_lcore_id(void);          /* LR_LCORE_NONE on a thread that is not EAL's */
uint32_t lr_lcore_main(void);
int lr_lcore_enabled(uint32_t lcore);
int lr_launch(int (*f)(void *), void *arg, uint32_t lcore);
/* Calls f on the interrupt thread, soon. */
int lr_alarm(void (*f)(void *), void *arg);
int lr_wait_lcore(uint32_t lcore);

/* ---- memory ---- */
struct rte_mempool *lr_pool_create(const char *name, uint32_t n, uint32_t cache, uint16_t data_room);
void lr_pool_free(struct rte_mempool *pool);
uint32_t lr_pool_avail(const struct rte_mempool *pool);
uint32_t lr_pool_chunks(const struct rte_mempool *pool);
/* Copies the template after the headroom of every mbuf of the pool. */
void lr_pool_fill(struct rte_mempool *pool, const uint8_t *bytes, uint16_t len);

/* Allocates all n or none, with length len; other fields are undefined. Returns 0 or negative. */
int lr_mbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t n, uint16_t len);
void lr_mbuf_free(struct rte_mbuf *mbuf);
void lr_mbuf_free_bulk(struct rte_mbuf **mbufs, uint32_t n);

/* Zeroed memory from the heap of DPDK, 64-byte aligned; null when it does not fit. */
void *lr_zalloc(size_t bytes);
void lr_free(void *memory);

/* ---- rings ---- */
struct rte_ring *lr_ring_create(const char *name, uint32_t depth); /* single producer, single consumer */
void lr_ring_free(struct rte_ring *ring);                          /* frees the mbufs still inside */
/* As many receive and transmit queues as rings; port id or negative errno. */
int lr_wire_port(const char *name, struct rte_ring *const *rx, struct rte_ring *const *tx, uint32_t queues);

/* ---- ports ---- */
enum { LR_RSS_KEY = 64 }; /* longer than the key of any device */
struct lr_port_conf {
	uint16_t rx_queues, tx_queues;
	uint16_t rx_desc, tx_desc;
	uint16_t mtu;
	uint8_t clamp_mtu;   /* take the driver's largest MTU instead of failing */
	uint8_t promiscuous; /* when supported */
	uint8_t link_interrupt; /* when supported */
	uint8_t rss; /* when supported: spread received frames over the queues by a hash */
	uint8_t rss_key[LR_RSS_KEY]; /* key of the hash, cut to the length that the device uses */
};
struct lr_port_info {
	const char *driver;
	uint16_t max_mtu;
	uint16_t max_rx_queues, max_tx_queues;
	int32_t socket;
	uint8_t mac[6];
	uint8_t rss; /* enabled LR_RSS_* */
};
enum { LR_RSS_IP = 1, LR_RSS_TCP = 2, LR_RSS_UDP = 4, LR_RSS_MPLS = 8, LR_RSS_VXLAN = 16, LR_RSS_SYMMETRIC = 32 };
struct lr_link { uint32_t mbps; uint8_t up; };
struct lr_stats { uint64_t ipackets, opackets, ibytes, obytes, imissed, ierrors, oerrors, rx_nombuf; };

int lr_vdev_init(const char *name, const char *args);
int lr_vdev_uninit(const char *name);
int lr_dev_probe(const char *devargs);
int lr_port_by_name(const char *name); /* port id or negative errno */
/* Configures the port, sets up every queue and starts. `step` gets the name of the failed step. */
int lr_port_start(uint16_t port, const struct lr_port_conf *conf, struct rte_mempool *pool, const char **step);
/* With `watched`, runs on the interrupt thread of EAL, where memif and virtio-user handle the loss of a peer. They take no
 * lock against a stop or close at the same time (both would free the same memory). */
int lr_port_restart(uint16_t port, int watched); /* while none of its queues is in use */
int lr_port_stop(uint16_t port, int watched);
int lr_port_close(uint16_t port, int watched);
int lr_port_promiscuous_off(uint16_t port);
int lr_port_info(uint16_t port, struct lr_port_info *info);
int lr_port_mtu(uint16_t port, uint16_t *mtu);
int lr_port_set_mtu(uint16_t port, uint16_t mtu);
int lr_port_link(uint16_t port, struct lr_link *link);
int lr_port_stats(uint16_t port, struct lr_stats *stats);
int lr_port_stats_reset(uint16_t port);
/* Fills at most n names (LR_XSTAT_NAME bytes each) and values; returns the total number, or negative. */
int lr_port_xstats(uint16_t port, char *names, uint64_t *values, uint32_t n);

uint16_t lr_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t n);
uint16_t lr_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t n);
/* Frees sent mbufs that the driver still holds. Falls back to an empty burst, which makes some drivers free them. */
int lr_tx_done_cleanup(uint16_t port, uint16_t queue);

/* ---- forwarding tables ---- */
/* Bytes of DPDK's heap in use, on all sockets. */
uint64_t lr_heap_used(void);
enum { LR_LOOKUP_SCALAR = 1, LR_LOOKUP_SCALAR_INLINE = 2, LR_LOOKUP_AVX512 = 4 };
struct rte_fib;
struct rte_fib6;
struct lr_route4 { uint64_t nh; uint32_t ip; uint8_t len; };
struct lr_route6 { uint64_t nh; uint8_t ip[16]; uint8_t len; };
struct rte_fib *lr_fib_create(const char *name, uint32_t routes, uint32_t tbl8, uint32_t nh_bytes, uint64_t none);
void lr_fib_free(struct rte_fib *fib);
/* Adding and deleting refuse a null table. `replaced`: 1 when a route with another next hop existed. */
int lr_fib_add(struct rte_fib *fib, uint32_t ip, uint8_t depth, uint64_t nh, uint32_t *replaced);
int lr_fib_delete(struct rte_fib *fib, uint32_t ip, uint8_t depth);
/* Copies at most n routes; returns the total number. */
uint32_t lr_fib_routes(struct rte_fib *fib, struct lr_route4 *out, uint32_t n);
int lr_fib_lookup(struct rte_fib *fib, const uint32_t *ips, uint64_t *nhs, uint32_t n);
/* 0, or negative when this machine or build lacks the function. */
int lr_fib_select(struct rte_fib *fib, int lookup);
struct rte_fib6 *lr_fib6_create(const char *name, uint32_t routes, uint32_t tbl8, uint32_t nh_bytes, uint64_t none);
void lr_fib6_free(struct rte_fib6 *fib);
int lr_fib6_add(struct rte_fib6 *fib, const uint8_t *ip, uint8_t depth, uint64_t nh, uint32_t *replaced);
int lr_fib6_delete(struct rte_fib6 *fib, const uint8_t *ip, uint8_t depth);
uint32_t lr_fib6_routes(struct rte_fib6 *fib, struct lr_route6 *out, uint32_t n);
int lr_fib6_lookup(struct rte_fib6 *fib, const uint8_t *ips, uint64_t *nhs, uint32_t n);
int lr_fib6_select(struct rte_fib6 *fib, int lookup);

/* ---- the host (host.c) ---- */
/* Whether this many bytes of 2 MiB pages are free now: reserves and releases them. 0 or errno. */
int lr_huge_probe(uint64_t bytes);
void lr_close_on_exec(int fd);
/* SO_BUSY_POLL, and SO_PREFER_BUSY_POLL if asked. 0 or errno. */
int lr_busy_poll(int fd, uint32_t us, int prefer);
/* Has an interface stamp all frames in hardware, or (back) as *tx and *rx say; both get what was before. 0 or errno. */
int lr_hw_stamps(const char *name, int *tx, int *rx);
/* Whether an AF_XDP socket has zero-copy: 1 or 0, -1 if the kernel does not say. */
int lr_xdp_zero_copy(int fd);
/* The NAPI instance that the last packet of a socket came through; 0: none is known. */
uint32_t lr_napi_id(int fd);
struct lr_iface { uint32_t index; uint32_t mtu; uint8_t up; uint8_t running; uint8_t promiscuous; };
int lr_iface(const char *name, struct lr_iface *out); /* 0 or errno */
int lr_iface_promiscuous_off(const char *name); /* 0 or errno */
/* Keeps frames with these bytes so far from their end out of this kernel's own stack, behind its taps (from Linux 6.6 on). A
 * descriptor: closing it, or the end of the process, ends that. Or -errno. */
int lr_iface_keep_from_stack(const char *name, const uint8_t mark[3], uint32_t from_end);
/* Offloads of an interface that make frames longer than its MTU, as bits; 0 where the kernel does not tell. */
#define LR_OFFLOAD_GRO 1
#define LR_OFFLOAD_LRO 2
#define LR_OFFLOAD_TSO 4
#define LR_OFFLOAD_GSO 8
uint32_t lr_iface_offloads(const char *name);
/* Stores at most n open AF_XDP sockets of this process in fds; returns the number stored. */
int lr_xdp_sockets(int *fds, int n);
void lr_xdp_socket_close(int fd); /* only if fd is an AF_XDP socket */
/* How the calling thread is scheduled; 0 or errno. The policy is the kernel's number, with SCHED_RESET_ON_FORK as a flag. */
enum { LR_SCHED_FIFO = 1, LR_SCHED_RR = 2, LR_SCHED_DEADLINE = 6, LR_SCHED_RESET_ON_FORK = 0x40000000 };
int lr_sched_get(int *policy, int *priority);
int lr_sched_set(int policy, int priority);
/* Stops libbpf and libxdp from writing to stderr, if the AF_XDP driver loaded them. */
void lr_quiet_bpf(void);

#endif
