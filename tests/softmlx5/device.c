/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of cards, opening them, what they can do. */
#include "device.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nic.h"

#define DEVICES_DEFAULT 2
#define IFINDEX_FIRST 0x5f0000u /* far above those of the kernel */
#define MTU_DEFAULT 1500
#define FIRMWARE "22.35.1012"

struct soft_device soft_devices[SOFT_DEVICES_MAX];
unsigned int soft_device_count;

static pid_t owner;
static uint32_t files; /* so many were opened */

/* What stands in the file behind a context, by which another process, or this one, imports it. */
struct command_file {
	char magic[8];
	uint32_t device, file;
	bool devx;
};
#define COMMAND_FILE_MAGIC "softmlx"

static void device_init(struct soft_device *device, unsigned int index)
{
	device->index = index;
	device->up = true;
	device->link = true;
	device->mtu = MTU_DEFAULT;
	device->ifindex = IFINDEX_FIRST + index;
	device->peer = &soft_devices[index ^ 1];
	memcpy(device->mac, (uint8_t[]){ 0x02, 0x15, 0xb3, 0, 0, (uint8_t)index },
	       sizeof(device->mac));
	snprintf(device->pci, sizeof(device->pci), "0000:aa:00.%u", index);
	snprintf(device->ifname, sizeof(device->ifname), "smlx%u", index);
	device->ibv.node_type = IBV_NODE_CA;
	device->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->ibv.name, sizeof(device->ibv.name), "mlx5_%u", index);
	snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name), "uverbs%u", index);
}

/* Objects that were loaded so far: a number that only grows. */
static int count_loaded(struct dl_phdr_info *info, size_t size, void *loaded)
{
	*(unsigned long long *)loaded = info->dlpi_adds;
	return 1;
}

static int is_verbs(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');

	return strncmp(slash != NULL ? slash + 1 : info->dlpi_name, "libibverbs.so",
		       strlen("libibverbs.so")) == 0;
}

/* Whether anything in this process can ask for cards. Preloaded, this library is also in programs that only start
 * another one (timeout, sh), and in those that load verbs late (Python). */
static bool is_wanted(void)
{
	static _Atomic unsigned long long looked;
	const char *preload = getenv("LD_PRELOAD");
	unsigned long long loaded = 0;

	if (preload == NULL || strstr(preload, "softmlx5") == NULL)
		return true; /* linked */
	dl_iterate_phdr(count_loaded, &loaded);
	return atomic_exchange(&looked, loaded) != loaded && dl_iterate_phdr(is_verbs, NULL) != 0;
}

static void devices_init(void)
{
	const char *text = getenv("SOFTMLX5_DEVICES");
	unsigned long count = text != NULL ? strtoul(text, NULL, 10) : DEVICES_DEFAULT;

	/* Cards come in pairs, with a cable between them. */
	if (count < 2 || count > SOFT_DEVICES_MAX || count % 2 != 0)
		count = DEVICES_DEFAULT;
	soft_device_count = (unsigned int)count;
	owner = getpid();
	/* Not for what the program starts: a sanitizer's symbolizer does not run with this. */
	unsetenv("LD_PRELOAD");
	for (unsigned int i = 0; i < soft_device_count; i++) {
		device_init(&soft_devices[i], i);
		soft_devices[i].steering = soft_steering_create();
		if (soft_devices[i].steering == NULL)
			soft_device_count = 0;
	}
	soft_faults_init();
	play_init();
	if (sysfs_create() < 0) {
		fprintf(stderr, "softmlx5: no folder for the cards; set TMPDIR\n");
		soft_device_count = 0;
	}
}

/* Files that other constructors open first, to say what the cards are to do, wake none. */
static _Atomic bool begun;

void devices_wake(void)
{
	static _Atomic bool awake;

	if (atomic_load(&begun) && !atomic_load(&awake) && is_wanted() &&
	    !atomic_exchange(&awake, true))
		devices_init();
}

/* Before main(), and so before EAL looks for its devices. */
static void __attribute__((constructor)) devices_first(void)
{
	atomic_store(&begun, true);
	devices_wake();
}

static void log_counters(const struct soft_device *device)
{
	for (unsigned int i = 0; i < netdev_stats_count(); i++)
		if (netdev_stats_value(device, i) != 0)
			soft_log("%s: %s %lu", device->ibv.name, netdev_stats_name(i),
				 (unsigned long)netdev_stats_value(device, i));
}

static void __attribute__((destructor)) devices_exit(void)
{
	if (getpid() != owner)
		return;
	sysfs_remove();
	for (unsigned int i = 0; i < soft_device_count; i++)
		log_counters(&soft_devices[i]);
	for (unsigned int i = 0; i < soft_device_count; i++)
		soft_steering_destroy(soft_devices[i].steering);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;

	devices_wake();
	list = calloc(soft_device_count + 1, sizeof(*list));
	if (list == NULL)
		return NULL;
	for (unsigned int i = 0; i < soft_device_count; i++)
		list[i] = &soft_devices[i].ibv;
	if (num_devices != NULL)
		*num_devices = (int)soft_device_count;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

const char *ibv_port_state_str(enum ibv_port_state port_state)
{
	return port_state == IBV_PORT_ACTIVE ? "active" : "down";
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		      size_t length)
{
	struct ibv_port_attr all = {
		.state = wire_up(soft_device(context)) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.active_width = 2,
		.active_speed = 64,
	};

	if (port_num != 1)
		return EINVAL;
	memcpy(attr, &all, length < sizeof(all) ? length : sizeof(all));
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port_num, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = FIRMWARE,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000ull,
		.vendor_id = 0x2c9,
		.vendor_part_id = 4125,
		.max_qp = SOFT_OBJECTS_MAX - 1,
		.max_qp_wr = 32768,
		.max_sge = 30,
		.max_cq = SOFT_OBJECTS_MAX - 1,
		.max_cqe = 4194303,
		.max_mr = 65535,
		.max_pd = 65535,
		.phys_port_cnt = 1,
	};
	return 0;
}

static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t length)
{
	struct ibv_device_attr_ex all = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: a tick is a nanosecond */
		.device_cap_flags_ex = IBV_DEVICE_RAW_IP_CSUM,
		.rss_caps = {
			.supported_qpts = 1 << IBV_QPT_RAW_PACKET,
			.max_rwq_indirection_tables = 1024,
			.max_rwq_indirection_table_size = 512,
			.rx_hash_fields_mask = UINT64_MAX,
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
		},
		.max_wq_type_rq = SOFT_OBJECTS_MAX - 1,
		.raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_IP_CSUM,
		.phys_port_cnt_ex = 1,
	};

	ibv_query_device(context, &all.orig_attr);
	memcpy(attr, &all, length < sizeof(all) ? length : sizeof(all));
	return 0;
}

static int query_clock(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint64_t now = nic_now_ns();

	if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0)
		return EINVAL;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	/* As rdma-core's mlx5 does: all ticks are there. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)now;
	return 0;
}

int mlx5dv_query_device(struct ibv_context *ctx_in, struct mlx5dv_context *attrs)
{
	const struct soft_faults *faults = &soft_device(ctx_in)->faults;
	uint64_t asked = attrs->comp_mask;

	attrs->comp_mask = 0;
	attrs->version = 0;
	attrs->flags = MLX5DV_CONTEXT_FLAGS_CQE_V1 | MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED |
		       MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW;
	if (asked & MLX5DV_CONTEXT_MASK_STRIDING_RQ && faults->log_strides_min) {
		attrs->comp_mask |= MLX5DV_CONTEXT_MASK_STRIDING_RQ;
		attrs->striding_rq_caps = (struct mlx5dv_striding_rq_caps){
			.min_single_stride_log_num_of_bytes = 6,
			.max_single_stride_log_num_of_bytes = 13,
			.min_single_wqe_log_num_of_strides = (uint32_t)faults->log_strides_min,
			.max_single_wqe_log_num_of_strides = SOFT_LOG_STRIDES_MAX,
			.supported_qpts = 1 << IBV_QPT_RAW_PACKET,
		};
	}
	if (asked & MLX5DV_CONTEXT_MASK_CQE_COMPRESION) {
		attrs->comp_mask |= MLX5DV_CONTEXT_MASK_CQE_COMPRESION;
		attrs->cqe_comp_caps.max_num = 64;
		attrs->cqe_comp_caps.supported_format =
			MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX;
	}
	return 0;
}

int mlx5dv_set_context_attr(struct ibv_context *context, enum mlx5dv_set_ctx_attr_type type,
			    void *attr)
{
	return 0; /* The driver offers its allocators; the model has no use for them. */
}

/* A new descriptor, or -1. */
static int command_file_make(const struct command_file *content)
{
	int fd = memfd_create("softmlx5", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, content, sizeof(*content), 0) == (ssize_t)sizeof(*content))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* fd: of the kernel's file; closed with the context, and on failure not. */
static struct ibv_context *context_make(struct ibv_device *ibv, const struct command_file *content,
					int fd)
{
	struct soft_device *device = container(ibv, struct soft_device, ibv);
	struct soft_context *context = calloc(1, sizeof(*context));
	struct ibv_context *ctx;

	if (context == NULL)
		return NULL;
	context->device = device;
	context->devx = content->devx;
	context->file = content->file;
	context->verbs.sz = sizeof(context->verbs);
	context->verbs.query_port = query_port;
	context->verbs.query_device_ex = query_device_ex;
	context->verbs.query_rt_values = query_clock;
	verbs_fill(&context->verbs);
	verbs_flow_fill(&context->verbs);
	ctx = &context->verbs.context;
	ctx->device = ibv;
	ctx->cmd_fd = fd;
	ctx->num_comp_vectors = 1;
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctx->async_fd < 0 || nic_start() < 0) {
		if (ctx->async_fd >= 0)
			close(ctx->async_fd);
		free(context);
		errno = ENOMEM;
		return NULL;
	}
	nic_lock();
	device->opens++;
	context->told_up = wire_up(device);
	context->next = device->contexts;
	device->contexts = context;
	nic_unlock();
	return ctx;
}

static struct ibv_context *device_open(struct ibv_device *ibv, bool devx)
{
	struct command_file content = { .magic = COMMAND_FILE_MAGIC, .devx = devx };
	struct ibv_context *ctx;
	int fd;

	content.device = container(ibv, struct soft_device, ibv)->index;
	content.file = __atomic_add_fetch(&files, 1, __ATOMIC_RELAXED);
	fd = command_file_make(&content);
	if (fd < 0) {
		errno = EMFILE;
		return NULL;
	}
	ctx = context_make(ibv, &content, fd);
	if (ctx == NULL)
		close(fd);
	return ctx;
}

/* A second context of the same file. The descriptor is the context's from then on. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct command_file content;

	if (pread(cmd_fd, &content, sizeof(content), 0) != (ssize_t)sizeof(content) ||
	    memcmp(content.magic, COMMAND_FILE_MAGIC, sizeof(content.magic)) != 0 ||
	    content.device >= soft_device_count) {
		errno = EINVAL;
		return NULL;
	}
	return context_make(&soft_devices[content.device].ibv, &content, cmd_fd);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return device_open(device, false);
}

/* SOFTMLX5_DEVX=0: a card whose firmware and kernel know no DevX. */
struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	const char *text = getenv("SOFTMLX5_DEVX");

	if (text != NULL && strcmp(text, "0") == 0) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return device_open(device, true);
}

int ibv_close_device(struct ibv_context *ctx)
{
	struct soft_context *context = soft_context(ctx);

	nic_lock();
	context->device->opens--;
	for (struct soft_context **at = &context->device->contexts; *at != NULL;
	     at = &(*at)->next) {
		if (*at != context)
			continue;
		*at = context->next;
		break;
	}
	nic_unlock();
	nic_stop();
	close(ctx->async_fd);
	close(ctx->cmd_fd);
	free(context);
	return 0;
}

void device_tell_link(struct soft_device *device)
{
	for (struct soft_context *context = device->contexts; context != NULL;
	     context = context->next)
		if (context->told_up != wire_up(device) ||
		    (device->faults.gone && !context->told_gone))
			eventfd_write(context->verbs.context.async_fd, 1);
}

/* Link changes and the card's end; the descriptor is non-blocking, as the driver sets it. */
int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct soft_context *context = soft_context(ctx);
	eventfd_t unused;
	bool up, told, gone;

	nic_lock();
	eventfd_read(ctx->async_fd, &unused);
	up = wire_up(context->device);
	told = context->told_up;
	context->told_up = up;
	gone = context->device->faults.gone && !context->told_gone;
	context->told_gone |= gone;
	nic_unlock();
	if (gone) {
		*event = (struct ibv_async_event){ .event_type = IBV_EVENT_DEVICE_FATAL };
		return 0;
	}
	if (up == told) {
		errno = EAGAIN;
		return -1;
	}
	*event = (struct ibv_async_event){
		.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
		.element.port_num = 1,
	};
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}
