/* Direct requests to the kernel, without DPDK: huge pages, interfaces, AF_XDP sockets, scheduling. See shim.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "shim.h"

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21 << 26)
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif

void lr_close_on_exec(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* How long the memif driver waits for a message that was announced. */
#define LR_MEMIF_WAIT_MS 200

#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif

int lr_busy_poll(int fd, uint32_t us, int prefer)
{
	int time = us > INT32_MAX ? INT32_MAX : (int)us;
	int on = 1;
	if (prefer && setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof(on)) != 0)
		return errno;
	return setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &time, sizeof(time)) == 0 ? 0 : errno;
}

int lr_hw_stamps(const char *name, int *tx, int *rx)
{
	struct hwtstamp_config now = { 0 }, wanted = { .tx_type = *tx, .rx_filter = *rx };
	struct ifreq request = { 0 };
	int err = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	request.ifr_data = (char *)&now;
	/* Older drivers cannot say what is set: then nothing is. */
	if (ioctl(fd, SIOCGHWTSTAMP, &request) != 0)
		memset(&now, 0, sizeof(now));
	request.ifr_data = (char *)&wanted;
	if (ioctl(fd, SIOCSHWTSTAMP, &request) != 0)
		err = errno;
	*tx = now.tx_type;
	*rx = now.rx_filter;
	close(fd);
	return err;
}

uint32_t lr_napi_id(int fd)
{
	uint32_t id = 0;
	socklen_t size = sizeof(id);
	return getsockopt(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &id, &size) == 0 ? id : 0;
}

/* For the memif driver alone, which calls them as connect and recvmsg (build.rs): neither waits for a peer without end. */
int lr_memif_connect(int fd, const struct sockaddr *to, socklen_t len);
ssize_t lr_memif_recvmsg(int fd, struct msghdr *msg, int flags);

int lr_memif_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	/* A peer whose backlog is full answers later, or is waiting for us itself: the caller tries again. */
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -1;
	int ret = connect(fd, to, len);
	int err = errno;
	fcntl(fd, F_SETFL, flags);
	errno = err;
	return ret;
}

ssize_t lr_memif_recvmsg(int fd, struct msghdr *msg, int flags)
{
	/* It is called when there is something to read; a message of which not all is there comes soon. */
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	if (poll(&readable, 1, LR_MEMIF_WAIT_MS) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return recvmsg(fd, msg, flags | MSG_DONTWAIT);
}

int lr_huge_probe(uint64_t bytes)
{
	int err = 0;
	int fd = memfd_create("linerate-probe", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	if (fd < 0)
		return errno;
	/* Mapping a hugetlb file reserves its pages without touching them. */
	void *at = ftruncate(fd, (off_t)bytes) == 0
		? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (at == MAP_FAILED)
		err = errno;
	else
		munmap(at, bytes);
	close(fd);
	return err;
}

int lr_iface(const char *name, struct lr_iface *out)
{
	struct ifreq req;
	int err = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	memset(out, 0, sizeof(*out));
	memset(&req, 0, sizeof(req));
	strncpy(req.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCGIFINDEX, &req) == 0) {
		out->index = (uint32_t)req.ifr_ifindex;
		if (ioctl(fd, SIOCGIFMTU, &req) == 0)
			out->mtu = (uint32_t)req.ifr_mtu;
		if (ioctl(fd, SIOCGIFFLAGS, &req) == 0) {
			out->up = (req.ifr_flags & IFF_UP) != 0;
			out->running = (req.ifr_flags & IFF_RUNNING) != 0;
			out->promiscuous = (req.ifr_flags & IFF_PROMISC) != 0;
		}
	} else {
		err = errno;
	}
	close(fd);
	return err;
}

int lr_iface_promiscuous_off(const char *name)
{
	struct ifreq req;
	int err = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	memset(&req, 0, sizeof(req));
	strncpy(req.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCGIFFLAGS, &req) == 0) {
		req.ifr_flags &= ~IFF_PROMISC;
		if (ioctl(fd, SIOCSIFFLAGS, &req) != 0)
			err = errno;
	} else {
		err = errno;
	}
	close(fd);
	return err;
}

/* As the kernel's headers have them from 6.6 on. */
#define LR_BPF_TCX_INGRESS 46
#define LR_TCX_NEXT (-1)
#define LR_TCX_DROP 2

static int64_t bpf(int command, void *attributes, unsigned int size)
{
	return syscall(__NR_bpf, command, attributes, size);
}

int lr_iface_keep_from_stack(const char *name, const uint8_t mark[3], uint32_t from_end)
{
	const uint8_t bytes[4] = { mark[0], mark[1], mark[2], 0 }, all[4] = { 0xff, 0xff, 0xff, 0 };
	int32_t want, mask;
	memcpy(&want, bytes, sizeof(want));
	memcpy(&mask, all, sizeof(mask));
#define INSN(c, d, s, o, i) { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }
	const struct bpf_insn program[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct __sk_buff, len), 0),
		INSN(BPF_ALU64 | BPF_SUB | BPF_K, BPF_REG_2, 0, 0, (int32_t)from_end),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, -4),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, 4),
		/* Fails for a frame that is shorter. */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_load_bytes),
		INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 5, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_10, -4, 0),
		INSN(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, mask),
		INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 2, want),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, LR_TCX_DROP),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, LR_TCX_NEXT),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
#undef INSN
	struct lr_iface iface;
	int err = lr_iface(name, &iface);
	if (err != 0)
		return -err;
	union bpf_attr load;
	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	load.insns = (uint64_t)(uintptr_t)program;
	load.insn_cnt = sizeof(program) / sizeof(program[0]);
	load.license = (uint64_t)(uintptr_t)"Dual MIT/GPL";
	int loaded = (int)bpf(BPF_PROG_LOAD, &load, sizeof(load));
	if (loaded < 0)
		return -errno;
	union bpf_attr attach;
	memset(&attach, 0, sizeof(attach));
	attach.link_create.prog_fd = (uint32_t)loaded;
	attach.link_create.target_ifindex = iface.index;
	attach.link_create.attach_type = LR_BPF_TCX_INGRESS;
	int link = (int)bpf(BPF_LINK_CREATE, &attach, sizeof(attach));
	int failed = errno;
	close(loaded);
	return link < 0 ? -failed : link;
}

static uint32_t ethtool_value(int fd, const char *name, uint32_t cmd)
{
	struct ifreq req;
	struct ethtool_value value = { .cmd = cmd };
	memset(&req, 0, sizeof(req));
	strncpy(req.ifr_name, name, IFNAMSIZ - 1);
	req.ifr_data = (void *)&value;
	return ioctl(fd, SIOCETHTOOL, &req) == 0 ? value.data : 0;
}

uint32_t lr_iface_offloads(const char *name)
{
	uint32_t on = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	if (ethtool_value(fd, name, ETHTOOL_GGRO))
		on |= LR_OFFLOAD_GRO;
	if (ethtool_value(fd, name, ETHTOOL_GFLAGS) & ETH_FLAG_LRO)
		on |= LR_OFFLOAD_LRO;
	if (ethtool_value(fd, name, ETHTOOL_GTSO))
		on |= LR_OFFLOAD_TSO;
	if (ethtool_value(fd, name, ETHTOOL_GGSO))
		on |= LR_OFFLOAD_GSO;
	close(fd);
	return on;
}

static int is_xdp_socket(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_XDP;
}

int lr_xdp_sockets(int *fds, int n)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	int count = 0;
	getrlimit(RLIMIT_NOFILE, &limit);
	int most = limit.rlim_cur > 65536 ? 65536 : (int)limit.rlim_cur;
	for (int fd = 3; fd < most && count < n; fd++)
		if (is_xdp_socket(fd))
			fds[count++] = fd;
	return count;
}

int lr_xdp_zero_copy(int fd)
{
	uint32_t flags = 0;
	socklen_t size = sizeof(flags);
	/* SOL_XDP, XDP_OPTIONS, XDP_OPTIONS_ZEROCOPY (linux/if_xdp.h). */
	if (getsockopt(fd, 283, 8, &flags, &size) != 0)
		return -1;
	return flags & 1;
}

void lr_xdp_socket_close(int fd)
{
	if (is_xdp_socket(fd))
		close(fd);
}

_Static_assert(LR_SCHED_FIFO == SCHED_FIFO && LR_SCHED_RR == SCHED_RR, "policies are numbered otherwise");
_Static_assert(LR_SCHED_RESET_ON_FORK == SCHED_RESET_ON_FORK, "the flag has another number");

int lr_sched_get(int *policy, int *priority)
{
	struct sched_param param = { 0 };
	*policy = sched_getscheduler(0);
	if (*policy < 0 || sched_getparam(0, &param) != 0)
		return errno;
	*priority = param.sched_priority;
	return 0;
}

int lr_sched_set(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	return sched_setscheduler(0, policy, &param) == 0 ? 0 : errno;
}

void lr_quiet_bpf(void)
{
	static const char *const where[][2] = {
		{ "libbpf.so.1", "libbpf_set_print" },
		{ "libbpf.so.0", "libbpf_set_print" },
		{ "libxdp.so.1", "libxdp_set_print" },
	};
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		void *lib = dlopen(where[i][0], RTLD_LAZY | RTLD_NOLOAD);
		if (lib == NULL)
			continue;
		void *(*set_print)(void *) = NULL;
		*(void **)&set_print = dlsym(lib, where[i][1]);
		if (set_print != NULL)
			set_print(NULL);
		dlclose(lib);
	}
}
