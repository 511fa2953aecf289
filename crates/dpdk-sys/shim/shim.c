/* Wraps inline functions and changing structures of DPDK in plain types, whole bursts at a time. See shim.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_rib.h>
#include <rte_rib6.h>
#include <rte_ring.h>
#include <rte_vect.h>
#include <rte_version.h>

#include "shim.h"

/* ---- the log ---- */

#define LOG_ROOM 8192
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[LOG_ROOM];
static size_t log_len;
static char log_error[512];

static void log_append(const char *text, size_t len, int is_error)
{
	pthread_mutex_lock(&log_lock);
	/* The first error after a mark is the cause. Later errors are consequences. */
	if (is_error && log_error[0] == 0) {
		size_t n = RTE_MIN(len, sizeof(log_error) - 1);
		memcpy(log_error, text, n);
		log_error[n] = 0;
		log_error[strcspn(log_error, "\n")] = 0;
	}
	if (len > LOG_ROOM) {
		text += len - LOG_ROOM;
		len = LOG_ROOM;
	}
	if (log_len + len > LOG_ROOM) {
		size_t drop = log_len + len - LOG_ROOM;
		memmove(log_text, log_text + drop, log_len - drop);
		log_len -= drop;
	}
	memcpy(log_text + log_len, text, len);
	log_len += len;
	pthread_mutex_unlock(&log_lock);
}

static ssize_t log_write(void *cookie, const char *text, size_t len)
{
	(void)cookie;
	log_append(text, len, rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR);
	return (ssize_t)len;
}

void lr_log_capture(void)
{
	cookie_io_functions_t io = { .write = log_write };
	FILE *stream = fopencookie(NULL, "w", io);
	if (stream != NULL) {
		setvbuf(stream, NULL, _IOLBF, BUFSIZ);
		rte_openlog_stream(stream);
	}
}

void lr_log_mark(void)
{
	pthread_mutex_lock(&log_lock);
	log_error[0] = 0;
	pthread_mutex_unlock(&log_lock);
}

static size_t copy_out(char *out, size_t room, const char *from, size_t len)
{
	size_t n = RTE_MIN(len, room);
	memcpy(out, from + (len - n), n);
	return n;
}

size_t lr_log_error(char *out, size_t room)
{
	pthread_mutex_lock(&log_lock);
	size_t n = RTE_MIN(strlen(log_error), room);
	memcpy(out, log_error, n);
	pthread_mutex_unlock(&log_lock);
	return n;
}

size_t lr_log_tail(char *out, size_t room)
{
	pthread_mutex_lock(&log_lock);
	size_t n = copy_out(out, room, log_text, log_len);
	pthread_mutex_unlock(&log_lock);
	return n;
}

/* ---- the environment ---- */

const char *lr_version(void) { return rte_version(); }
int lr_version_header_year(void) { return RTE_VER_YEAR; }
int lr_version_header_month(void) { return RTE_VER_MONTH; }
const char *lr_runtime_dir(void) { return rte_eal_get_runtime_dir(); }
int lr_errno(void) { return rte_errno; }
const char *lr_strerror(int err) { return rte_strerror(err); }
uint64_t lr_tsc(void) { return rte_rdtsc(); }
uint64_t lr_tsc_hz(void) { return rte_get_tsc_hz(); }

/* rte_eal_init writes fatal errors to stderr besides the log: capture them for our own message. */
int lr_eal_init(int argc, char **argv)
{
	fflush(stderr);
	int saved = dup(STDERR_FILENO);
	int file = memfd_create("linerate-stderr", MFD_CLOEXEC);
	if (saved >= 0 && file >= 0)
		dup2(file, STDERR_FILENO);
	rte_errno = 0;
	int ret = rte_eal_init(argc, argv);
	int err = rte_errno;
	fflush(stderr);
	if (saved >= 0 && file >= 0) {
		char text[1024];
		dup2(saved, STDERR_FILENO);
		ssize_t n = pread(file, text, sizeof(text), 0);
		if (n > 0)
			log_append(text, (size_t)n, ret < 0);
	}
	if (saved >= 0)
		close(saved);
	if (file >= 0)
		close(file);
	return ret < 0 ? -(err ? err : EINVAL) : ret;
}

int lr_eal_cleanup(void) { return rte_eal_cleanup(); }
void lr_at_exit(void (*f)(void)) { (void)atexit(f); }

/* ---- lcores ---- */

uint32_t lr_lcore_id(void) { return rte_lcore_id(); }
uint32_t lr_lcore_main(void) { return rte_get_main_lcore(); }
int lr_lcore_enabled(uint32_t lcore) { return lcore < RTE_MAX_LCORE && rte_lcore_is_enabled(lcore); }
int lr_alarm(void (*f)(void *), void *arg) { return rte_eal_alarm_set(1, f, arg); }

int lr_launch(int (*f)(void *), void *arg, uint32_t lcore) { return rte_eal_remote_launch(f, arg, lcore); }
int lr_wait_lcore(uint32_t lcore) { return rte_eal_wait_lcore(lcore); }

/* ---- memory ---- */

static void mbuf_init(struct rte_mempool *pool, void *arg, void *obj, unsigned int i)
{
	struct rte_mbuf *m = obj;
	rte_pktmbuf_init(pool, arg, obj, i);
	/* The pool ignores page borders and has no IO addresses. Use the virtual addresses. */
	rte_mbuf_iova_set(m, (rte_iova_t)(uintptr_t)m->buf_addr);
}

/* rte_pktmbuf_pool_create, but packed: objects may cross pages (we run with --iova-mode=va only). With 4 KiB pages
 * packing halves the memory. The AF_XDP driver relies on objects without gaps. */
struct rte_mempool *lr_pool_create(const char *name, uint32_t n, uint32_t cache, uint16_t data_room)
{
	struct rte_pktmbuf_pool_private priv = { .mbuf_data_room_size = data_room };
	unsigned int flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	struct rte_mempool *pool = rte_mempool_create_empty(name, n, sizeof(struct rte_mbuf) + data_room, cache,
			sizeof(priv), (int)rte_socket_id() < 0 ? SOCKET_ID_ANY : (int)rte_socket_id(), flags);
	if (pool == NULL)
		return NULL;
	int ret = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (ret == 0) {
		rte_pktmbuf_pool_init(pool, &priv);
		ret = rte_mempool_populate_default(pool);
	}
	if (ret < 0) {
		rte_mempool_free(pool);
		rte_errno = -ret;
		return NULL;
	}
	rte_mempool_obj_iter(pool, flags ? mbuf_init : rte_pktmbuf_init, NULL);
	return pool;
}

void lr_pool_free(struct rte_mempool *pool) { rte_mempool_free(pool); }
uint32_t lr_pool_avail(const struct rte_mempool *pool) { return rte_mempool_avail_count(pool); }
uint32_t lr_pool_chunks(const struct rte_mempool *pool) { return pool->nb_mem_chunks; }

struct fill { const uint8_t *bytes; uint16_t len; };

static void fill_one(struct rte_mempool *pool, void *arg, void *obj, unsigned int i)
{
	struct fill *fill = arg;
	struct rte_mbuf *m = obj;
	(void)pool;
	(void)i;
	memcpy((char *)m->buf_addr + RTE_PKTMBUF_HEADROOM, fill->bytes, fill->len);
}

void lr_pool_fill(struct rte_mempool *pool, const uint8_t *bytes, uint16_t len)
{
	struct fill fill = { bytes, len };
	rte_mempool_obj_iter(pool, fill_one, &fill);
}

/* data_off, refcnt, nb_segs and port are one aligned 64-bit word in every version so far. */
#define REARM offsetof(struct rte_mbuf, data_off)
_Static_assert(REARM % 8 == 0 && offsetof(struct rte_mbuf, refcnt) == REARM + 2
		&& offsetof(struct rte_mbuf, nb_segs) == REARM + 4 && offsetof(struct rte_mbuf, port) == REARM + 6,
	"rte_mbuf's rearm word changed");

int lr_mbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t n, uint16_t len)
{
	const uint16_t fields[4] = { RTE_PKTMBUF_HEADROOM, 1, 1, RTE_MBUF_PORT_INVALID };
	uint64_t rearm;
	memcpy(&rearm, fields, sizeof(rearm));
	int ret = rte_mempool_get_bulk(pool, (void **)mbufs, n);
	if (ret != 0)
		return ret;
	/* A raw mbuf already has refcnt 1, nb_segs 1 and next NULL. Do not touch the second cache line. */
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = mbufs[i];
		uint64_t now;
		memcpy(&now, (char *)m + REARM, sizeof(now));
		/* Mostly unchanged. Without a write, the cache line stays shared with the core that reads it next. */
		if (unlikely(now != rearm))
			memcpy((char *)m + REARM, &rearm, sizeof(rearm));
		if (unlikely(m->ol_flags != 0))
			m->ol_flags = 0;
		if (unlikely(m->pkt_len != len || m->data_len != len)) {
			m->pkt_len = len;
			m->data_len = len;
		}
	}
	return 0;
}

void lr_mbuf_free(struct rte_mbuf *mbuf) { rte_pktmbuf_free(mbuf); }

static inline int is_plain(const struct rte_mbuf *m)
{
	return rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 && RTE_MBUF_DIRECT(m);
}

void lr_mbuf_free_bulk(struct rte_mbuf **mbufs, uint32_t n)
{
	uint32_t i = 0;
	while (i < n) {
		if (unlikely(!is_plain(mbufs[i]))) {
			rte_pktmbuf_free(mbufs[i++]);
			continue;
		}
		struct rte_mempool *pool = mbufs[i]->pool;
		uint32_t start = i++;
		while (i < n && mbufs[i]->pool == pool && likely(is_plain(mbufs[i])))
			i++;
		rte_mempool_put_bulk(pool, (void **)&mbufs[start], i - start);
	}
}

void *lr_zalloc(size_t bytes)
{
	return rte_zmalloc(NULL, bytes, RTE_CACHE_LINE_SIZE < 64 ? 64 : RTE_CACHE_LINE_SIZE);
}

void lr_free(void *memory)
{
	rte_free(memory);
}

/* ---- rings ---- */

struct rte_ring *lr_ring_create(const char *name, uint32_t depth)
{
	return rte_ring_create(name, depth, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

void lr_ring_free(struct rte_ring *ring)
{
	void *m;
	while (rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

int lr_wire_port(const char *name, struct rte_ring *const *rx, struct rte_ring *const *tx, uint32_t queues)
{
	int port = rte_eth_from_rings(name, rx, queues, tx, queues, rte_socket_id());
	return port >= 0 ? port : -(rte_errno ? rte_errno : EIO);
}

/* ---- ports ---- */

int lr_vdev_init(const char *name, const char *args) { return rte_vdev_init(name, args); }
int lr_vdev_uninit(const char *name) { return rte_vdev_uninit(name); }
int lr_dev_probe(const char *devargs) { return rte_dev_probe(devargs); }

int lr_port_by_name(const char *name)
{
	uint16_t port = 0;
	int ret = rte_eth_dev_get_port_by_name(name, &port);
	return ret == 0 ? port : ret;
}

int lr_port_start(uint16_t port, const struct lr_port_conf *conf, struct rte_mempool *pool, const char **step)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf eth = { 0 };
	uint16_t rx_desc = conf->rx_desc, tx_desc = conf->tx_desc;
	int ret;

	*step = "reading the device's limits";
	ret = rte_eth_dev_info_get(port, &info);
	if (ret != 0)
		return ret;
	eth.rxmode.mtu = conf->mtu;
	if (conf->clamp_mtu) {
		/* If the driver sets max_rx_pktlen, ethdev derives the largest MTU from it. */
		uint32_t largest = info.max_mtu;
		if (info.max_mtu == UINT16_MAX && info.max_rx_pktlen < UINT16_MAX)
			largest = info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;
		eth.rxmode.mtu = RTE_MIN(eth.rxmode.mtu, largest);
	}
	static uint8_t rss_key[LR_RSS_KEY]; /* drivers keep the pointer and read the key at every start: keep the bytes constant */
	/* The null driver claims RSS but makes all frames in the queue that is polled. */
	uint64_t hash = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP
			| RTE_ETH_RSS_MPLS | RTE_ETH_RSS_VXLAN);
	if (conf->rss && hash != 0 && strcmp(info.driver_name, "net_null") != 0) {
		eth.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		eth.rx_adv_conf.rss_conf.rss_hf = hash;
		if (info.hash_key_size > 0 && info.hash_key_size <= LR_RSS_KEY) {
			memcpy(rss_key, conf->rss_key, sizeof(rss_key));
			eth.rx_adv_conf.rss_conf.rss_key = rss_key;
			eth.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size;
		}
	}
	eth.intr_conf.lsc = conf->link_interrupt && (*info.dev_flags & RTE_ETH_DEV_INTR_LSC) != 0;
	*step = "configuring";
	ret = rte_eth_dev_configure(port, conf->rx_queues, conf->tx_queues, &eth);
	if (ret != 0)
		return ret;
	*step = "choosing ring sizes";
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx_desc, &tx_desc);
	if (ret != 0)
		return ret;
	unsigned int socket = (unsigned int)rte_eth_dev_socket_id(port); /* SOCKET_ID_ANY is -1 */
	*step = "setting up a receive queue";
	for (uint16_t q = 0; q < conf->rx_queues; q++) {
		ret = rte_eth_rx_queue_setup(port, q, rx_desc, socket,
				NULL, pool);
		if (ret != 0)
			return ret;
	}
	*step = "setting up a transmit queue";
	for (uint16_t q = 0; q < conf->tx_queues; q++) {
		ret = rte_eth_tx_queue_setup(port, q, tx_desc, socket,
				NULL);
		if (ret != 0)
			return ret;
	}
	*step = "starting";
	ret = rte_eth_dev_start(port);
	if (ret != 0)
		return ret;
	if (conf->promiscuous) {
		*step = "entering promiscuous mode";
		ret = rte_eth_promiscuous_enable(port);
		/* Software ports without promiscuous mode do not filter. */
		if (ret != 0 && ret != -ENOTSUP)
			return ret;
	}
	*step = "";
	return 0;
}

struct call {
	int (*f)(uint16_t port);
	uint16_t port;
	int ret, done;
	pthread_mutex_t lock;
	pthread_cond_t finished;
};

static void call_now(void *arg)
{
	struct call *call = arg;
	int ret = call->f(call->port);
	pthread_mutex_lock(&call->lock);
	call->ret = ret;
	call->done = 1;
	pthread_cond_signal(&call->finished);
	pthread_mutex_unlock(&call->lock);
}

/* The interrupt thread serves alarms one after another. */
static int call_on_interrupt_thread(int (*f)(uint16_t port), uint16_t port)
{
	struct call call = { f, port, 0, 0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
	if (rte_eal_alarm_set(1, call_now, &call) != 0)
		return f(port);
	pthread_mutex_lock(&call.lock);
	while (!call.done)
		pthread_cond_wait(&call.finished, &call.lock);
	pthread_mutex_unlock(&call.lock);
	return call.ret;
}

static int restart(uint16_t port)
{
	int ret = rte_eth_dev_stop(port);
	return ret == 0 ? rte_eth_dev_start(port) : ret;
}

int lr_port_restart(uint16_t port, int watched)
{
	return watched ? call_on_interrupt_thread(restart, port) : restart(port);
}

int lr_port_stop(uint16_t port, int watched)
{
	return watched ? call_on_interrupt_thread(rte_eth_dev_stop, port) : rte_eth_dev_stop(port);
}

int lr_port_close(uint16_t port, int watched)
{
	return watched ? call_on_interrupt_thread(rte_eth_dev_close, port) : rte_eth_dev_close(port);
}

int lr_port_promiscuous_off(uint16_t port) { return rte_eth_promiscuous_disable(port); }

int lr_port_info(uint16_t port, struct lr_port_info *out)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	int ret = rte_eth_dev_info_get(port, &info);
	if (ret != 0)
		return ret;
	memset(out, 0, sizeof(*out));
	out->driver = info.driver_name;
	out->max_mtu = info.max_mtu;
	out->max_rx_queues = info.max_rx_queues;
	out->max_tx_queues = info.max_tx_queues;
	out->socket = rte_eth_dev_socket_id(port);
	if (rte_eth_macaddr_get(port, &mac) == 0)
		memcpy(out->mac, mac.addr_bytes, sizeof(out->mac));
	struct rte_eth_conf eth;
	memset(&eth, 0, sizeof(eth));
	if (rte_eth_dev_conf_get(port, &eth) == 0 && eth.rxmode.mq_mode == RTE_ETH_MQ_RX_RSS) {
		/* The driver may have reduced the configuration. */
		uint8_t key[UINT8_MAX] = {0};
		struct rte_eth_rss_conf on = { .rss_key = key, .rss_key_len = info.hash_key_size };
		uint64_t hash = eth.rx_adv_conf.rss_conf.rss_hf;
		uint8_t symmetric = 0;
		if (rte_eth_dev_rss_hash_conf_get(port, &on) == 0) {
			hash = on.rss_hf;
			/* Repeat two bytes: swapping 16-bit fields leaves the hash unchanged. */
			symmetric = info.hash_key_size > 2 && (key[0] | key[1]) != 0
				&& memcmp(key, key + 2, info.hash_key_size - 2u) == 0;
		}
		out->rss = (hash & RTE_ETH_RSS_IP ? LR_RSS_IP : 0) | (hash & RTE_ETH_RSS_TCP ? LR_RSS_TCP : 0)
			| (hash & RTE_ETH_RSS_UDP ? LR_RSS_UDP : 0) | (hash & RTE_ETH_RSS_MPLS ? LR_RSS_MPLS : 0)
			| (hash & RTE_ETH_RSS_VXLAN ? LR_RSS_VXLAN : 0) | (symmetric ? LR_RSS_SYMMETRIC : 0);
	}
	return 0;
}

int lr_port_mtu(uint16_t port, uint16_t *mtu) { return rte_eth_dev_get_mtu(port, mtu); }
int lr_port_set_mtu(uint16_t port, uint16_t mtu) { return rte_eth_dev_set_mtu(port, mtu); }

int lr_port_link(uint16_t port, struct lr_link *out)
{
	struct rte_eth_link link;
	memset(&link, 0, sizeof(link));
	int ret = rte_eth_link_get_nowait(port, &link);
	out->up = link.link_status == RTE_ETH_LINK_UP;
	out->mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	return ret;
}

int lr_port_stats(uint16_t port, struct lr_stats *out)
{
	struct rte_eth_stats s;
	int ret = rte_eth_stats_get(port, &s);
	if (ret != 0)
		return ret;
	*out = (struct lr_stats){ s.ipackets, s.opackets, s.ibytes, s.obytes, s.imissed, s.ierrors, s.oerrors,
		s.rx_nombuf };
	return 0;
}

int lr_port_stats_reset(uint16_t port) { return rte_eth_stats_reset(port); }

int lr_port_xstats(uint16_t port, char *names, uint64_t *values, uint32_t n)
{
	enum { MOST = 1024 };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct rte_eth_xstat_name name[MOST];
	static struct rte_eth_xstat value[MOST];
	int named = rte_eth_xstats_get_names(port, NULL, 0);
	if (names == NULL || named <= 0)
		return RTE_MIN(named, MOST);
	pthread_mutex_lock(&lock);
	named = rte_eth_xstats_get_names(port, name, MOST);
	int valued = rte_eth_xstats_get(port, value, MOST);
	int count = RTE_MIN(named, MOST);
	for (int i = 0; i < valued && i < MOST && i < (int)n; i++) {
		if (value[i].id >= (uint64_t)count)
			continue;
		memcpy(names + (size_t)i * LR_XSTAT_NAME, name[value[i].id].name, LR_XSTAT_NAME);
		values[i] = value[i].value;
	}
	pthread_mutex_unlock(&lock);
	return valued < 0 ? valued : RTE_MIN(valued, count);
}

uint16_t lr_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t n)
{
	return rte_eth_rx_burst(port, queue, mbufs, n);
}

uint16_t lr_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, mbufs, n);
}

int lr_tx_done_cleanup(uint16_t port, uint16_t queue)
{
	struct rte_mbuf *none = NULL;
	int ret = rte_eth_tx_done_cleanup(port, queue, 0);
	if (ret == -ENOTSUP) {
		(void)rte_eth_tx_burst(port, queue, &none, 0);
		ret = 0;
	}
	return ret;
}

/* ---- forwarding tables ---- */

uint64_t lr_heap_used(void)
{
	uint64_t used = 0;
	for (unsigned int i = 0; i < rte_socket_count(); i++) {
		struct rte_malloc_socket_stats stats;
		if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0)
			used += stats.heap_allocsz_bytes;
	}
	return used;
}

/* By default, DPDK avoids AVX-512 everywhere, including drivers. Allow it here for the table only. */
static int with_avx512(int (*select)(void *fib, int type), void *fib, int type)
{
	uint16_t before = rte_vect_get_max_simd_bitwidth();
	if (before < RTE_VECT_SIMD_512 && rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512) != 0)
		return -EPERM; /* an argument forces the width */
	int ret = select(fib, type);
	(void)rte_vect_set_max_simd_bitwidth(before);
	return ret;
}

static int nh_log2(uint32_t bytes) { return bytes == 2 ? 1 : bytes == 8 ? 3 : 2; }

struct rte_fib *lr_fib_create(const char *name, uint32_t routes, uint32_t tbl8, uint32_t nh_bytes, uint64_t none)
{
	struct rte_fib_conf conf = { .type = RTE_FIB_DIR24_8, .default_nh = none, .max_routes = (int)routes };
	conf.dir24_8.nh_sz = (enum rte_fib_dir24_8_nh_sz)nh_log2(nh_bytes);
	conf.dir24_8.num_tbl8 = tbl8;
	rte_errno = 0; /* some failures inside do not set it */
	return rte_fib_create(name, SOCKET_ID_ANY, &conf);
}

void lr_fib_free(struct rte_fib *fib) { rte_fib_free(fib); }

/* When a route gets another next hop, DPDK reports success even if it runs out of groups: delete the route first. */
int lr_fib_add(struct rte_fib *fib, uint32_t ip, uint8_t depth, uint64_t nh, uint32_t *replaced)
{
	uint64_t now;
	*replaced = 0;
	if (fib == NULL)
		return -ENOMEM;
	if (depth > RTE_FIB_MAXDEPTH)
		return -EINVAL;
	struct rte_rib_node *there = rte_rib_lookup_exact(rte_fib_get_rib(fib), ip, depth);
	if (there != NULL && rte_rib_get_nh(there, &now) == 0 && now != nh) {
		int ret = rte_fib_delete(fib, ip, depth);
		if (ret != 0)
			return ret;
		*replaced = 1;
	}
	return rte_fib_add(fib, ip, depth, nh);
}


int lr_fib_delete(struct rte_fib *fib, uint32_t ip, uint8_t depth)
{
	return fib == NULL ? -ENOMEM : rte_fib_delete(fib, ip, depth);
}


/* The walk skips the route of length 0. */
uint32_t lr_fib_routes(struct rte_fib *fib, struct lr_route4 *out, uint32_t n)
{
	struct rte_rib *rib = fib == NULL ? NULL : rte_fib_get_rib(fib);
	if (rib == NULL)
		return 0;
	struct rte_rib_node *node = rte_rib_lookup_exact(rib, 0, 0);
	uint32_t count = 0;
	if (node == NULL)
		node = rte_rib_get_nxt(rib, 0, 0, NULL, RTE_RIB_GET_NXT_ALL);
	while (node != NULL) {
		struct lr_route4 route = { 0 };
		rte_rib_get_ip(node, &route.ip);
		rte_rib_get_depth(node, &route.len);
		rte_rib_get_nh(node, &route.nh);
		if (count < n)
			out[count] = route;
		count++;
		node = rte_rib_get_nxt(rib, 0, 0, route.len == 0 ? NULL : node, RTE_RIB_GET_NXT_ALL);
	}
	return count;
}

int lr_fib_lookup(struct rte_fib *fib, const uint32_t *ips, uint64_t *nhs, uint32_t n)
{
	return rte_fib_lookup_bulk(fib, (uint32_t *)(uintptr_t)ips, nhs, (int)n);
}

static int select4(void *fib, int type)
{
	/* DPDK refuses a null pointer. */
	 return rte_fib_select_lookup(fib, (enum rte_fib_lookup_type)type);
}

static int select6(void *fib, int type)
{
	 return rte_fib6_select_lookup(fib, (enum rte_fib6_lookup_type)type);
}

int lr_fib_select(struct rte_fib *fib, int lookup)
{
	switch (lookup) {
	case LR_LOOKUP_SCALAR:
		return select4(fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
	case LR_LOOKUP_SCALAR_INLINE:
		return select4(fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_INLINE);
	case LR_LOOKUP_AVX512:
		return with_avx512(select4, fib, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512);
	default:
		return -EINVAL;
	}
}

int lr_fib6_select(struct rte_fib6 *fib, int lookup)
{
	switch (lookup) {
	case LR_LOOKUP_SCALAR:
		return select6(fib, RTE_FIB6_LOOKUP_TRIE_SCALAR);
	case LR_LOOKUP_AVX512:
		return with_avx512(select6, fib, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512);
	default:
		return -EINVAL;
	}
}

struct rte_fib6 *lr_fib6_create(const char *name, uint32_t routes, uint32_t tbl8, uint32_t nh_bytes, uint64_t none)
{
	struct rte_fib6_conf conf = { .type = RTE_FIB6_TRIE, .default_nh = none, .max_routes = (int)routes };
	conf.trie.nh_sz = (enum rte_fib_trie_nh_sz)nh_log2(nh_bytes);
	conf.trie.num_tbl8 = tbl8;
	rte_errno = 0;
	return rte_fib6_create(name, SOCKET_ID_ANY, &conf);
}

void lr_fib6_free(struct rte_fib6 *fib) { rte_fib6_free(fib); }

/* Uses void *, because the address type became struct rte_ipv6_addr in 24.11. */
int lr_fib6_add(struct rte_fib6 *fib, const uint8_t *ip, uint8_t depth, uint64_t nh, uint32_t *replaced)
{
	const void *addr = ip;
	uint64_t now;
	*replaced = 0;
	if (fib == NULL)
		return -ENOMEM;
	if (depth > RTE_FIB6_MAXDEPTH)
		return -EINVAL;
	/* See lr_fib_add. */
	struct rte_rib6_node *there = rte_rib6_lookup_exact(rte_fib6_get_rib(fib), addr, depth);
	if (there != NULL && rte_rib6_get_nh(there, &now) == 0 && now != nh) {
		int ret = rte_fib6_delete(fib, addr, depth);
		if (ret != 0)
			return ret;
		*replaced = 1;
	}
	return rte_fib6_add(fib, addr, depth, nh);
}

uint32_t lr_fib6_routes(struct rte_fib6 *fib, struct lr_route6 *out, uint32_t n)
{
	static const uint8_t any[16];
	const void *zero = any;
	struct rte_rib6 *rib = fib == NULL ? NULL : rte_fib6_get_rib(fib);
	if (rib == NULL)
		return 0;
	struct rte_rib6_node *node = rte_rib6_lookup_exact(rib, zero, 0);
	uint32_t count = 0;
	if (node == NULL)
		node = rte_rib6_get_nxt(rib, zero, 0, NULL, RTE_RIB6_GET_NXT_ALL);
	while (node != NULL) {
		struct lr_route6 route = { 0 };
		void *ip = route.ip;
		rte_rib6_get_ip(node, ip);
		rte_rib6_get_depth(node, &route.len);
		rte_rib6_get_nh(node, &route.nh);
		if (count < n)
			out[count] = route;
		count++;
		node = rte_rib6_get_nxt(rib, zero, 0, route.len == 0 ? NULL : node, RTE_RIB6_GET_NXT_ALL);
	}
	return count;
}

int lr_fib6_delete(struct rte_fib6 *fib, const uint8_t *ip, uint8_t depth)
{
	const void *addr = ip;
	return fib == NULL ? -ENOMEM : rte_fib6_delete(fib, addr, depth);
}

int lr_fib6_lookup(struct rte_fib6 *fib, const uint8_t *ips, uint64_t *nhs, uint32_t n)
{
	void *addrs = (void *)(uintptr_t)ips;
	return rte_fib6_lookup_bulk(fib, addrs, nhs, (int)n);
}
