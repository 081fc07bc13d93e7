/* SPDX-License-Identifier: BSD-3-Clause */
/* A ConnectX's context, protection domain and memory, made by us. */
#include "port/devx.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "base/log.h"

#define PAGE 4096u /* of pgsz_bitmap: every page size from here on */

/* ---- opening ---- */

static struct ibv_device *device_of(struct ibv_device **list, const char *rdma)
{
	for (size_t i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), rdma) == 0)
			return list[i];
	return NULL;
}

static int context_open(struct devx_card *card, const struct connectx_card *found,
			struct gdrcap_error *error)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device = device_of(list, found->rdma);
	int code = ENODEV;

	if (device) {
		errno = 0;
		card->context = mlx5dv_open_device(device, &attr);
		code = card->context ? 0 : errno ? errno : ENOTSUP;
	}
	if (list)
		ibv_free_device_list(list);
	if (code == 0)
		return 0;
	if (!device)
		return error_set(
			error, -ENODEV,
			"port %s: the RDMA library finds no device of it; it needs the "
			"kernel's mlx5_ib (rdma link shows its device) and libmlx5 (package "
			"ibverbs-providers)",
			card->name);
	return error_set(
		error, code == EACCES || code == EPERM ? -EPERM : -ENOTSUP,
		"port %s: queues of our own need commands of the card (DevX), and these are "
		"refused: %s; that takes a ConnectX-5 or later, Linux 4.20 or later and "
		"rights (root, or CAP_NET_RAW); without them leave the queues to the driver",
		card->name, strerror(code));
}

static int capabilities_get(struct devx_card *card, uint16_t which, uint8_t *out,
			    struct gdrcap_error *error)
{
	uint8_t in[PRM_QUERY_CAP_IN_BYTES] = { 0 };
	int code;

	memset(out, 0, PRM_QUERY_CAP_OUT_BYTES);
	prm_set(in, PRM_OPCODE, PRM_QUERY_HCA_CAP);
	prm_set(in, PRM_OP_MOD, which);
	code = mlx5dv_devx_general_cmd(card->context, in, sizeof(in), out, PRM_QUERY_CAP_OUT_BYTES);
	if (code == 0)
		return 0;
	code = code > 0 ? code : errno ? errno : EIO;
	return error_set(error, -ENOTSUP,
			 "port %s: the card does not say what it can: %s (status 0x%x, syndrome "
			 "0x%x); see its firmware (mstflint), or leave the queues to the driver",
			 card->name, strerror(code), prm_get(out, PRM_STATUS),
			 prm_get(out, PRM_SYNDROME));
}

/* As the driver asks for: whatever the card's clock is set to, but where it knows no real time. */
static uint8_t time_format(uint32_t capability)
{
	return capability == PRM_CAP_TS_FREE_RUNNING ? PRM_TS_FREE_RUNNING : PRM_TS_DEFAULT;
}

/* Of receive queues of raw Ethernet. A card or a kernel that says nothing of them has none. */
static void strides_read(struct devx_card *card)
{
	struct mlx5dv_context attributes = { .comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ };
	const struct mlx5dv_striding_rq_caps *strides = &attributes.striding_rq_caps;

	if (mlx5dv_query_device(card->context, &attributes) != 0 ||
	    !(attributes.comp_mask & MLX5DV_CONTEXT_MASK_STRIDING_RQ) ||
	    !(strides->supported_qpts >> IBV_QPT_RAW_PACKET & 1))
		return;
	card->strides = (struct devx_strides){
		.frames_min = (uint8_t)strides->min_single_wqe_log_num_of_strides,
		.frames_max = (uint8_t)strides->max_single_wqe_log_num_of_strides,
		.bytes_min = (uint8_t)strides->min_single_stride_log_num_of_bytes,
		.bytes_max = (uint8_t)strides->max_single_stride_log_num_of_bytes,
	};
}

static int capabilities_read(struct devx_card *card, struct gdrcap_error *error)
{
	uint8_t out[PRM_QUERY_CAP_OUT_BYTES];
	const uint8_t *capability = out + PRM_CAP;
	int ret = capabilities_get(card, PRM_CAP_GENERAL_CURRENT, out, error);

	if (ret < 0)
		return ret;
	card->log_cq_max = prm_get(capability, PRM_CAP_LOG_MAX_CQ_SIZE);
	card->log_wq_max = prm_get(capability, PRM_CAP_LOG_MAX_WQ_SIZE);
	card->rx_time = time_format(prm_get(capability, PRM_CAP_RQ_TS_FORMAT));
	card->tx_time = time_format(prm_get(capability, PRM_CAP_SQ_TS_FORMAT));
	ret = capabilities_get(card, PRM_CAP_ETHERNET_CURRENT, out, error);
	if (ret < 0)
		return ret;
	card->inline_mode = (uint8_t)prm_get(capability, PRM_ETH_INLINE_MODE);
	strides_read(card);
	return 0;
}

static int domain_create(struct devx_card *card, struct gdrcap_error *error)
{
	struct mlx5dv_obj object = { 0 };
	struct mlx5dv_pd numbered = { 0 };
	int ret;

	card->pd = ibv_alloc_pd(card->context);
	if (!card->pd)
		return error_set(error, errno ? -errno : -ENOMEM,
				 "port %s: the kernel gives no protection domain: %s", card->name,
				 strerror(errno));
	object.pd.in = card->pd;
	object.pd.out = &numbered;
	ret = mlx5dv_init_obj(&object, MLX5DV_OBJ_PD);
	if (ret)
		return error_set(error, -EIO,
				 "port %s: libmlx5 does not say the protection domain's number: %s",
				 card->name, strerror(errno ? errno : ret));
	card->pd_number = numbered.pdn;
	return 0;
}

int devx_open(struct devx_card *card, const struct connectx_card *found, const char *name,
	      struct gdrcap_error *error)
{
	int ret;

	memset(card, 0, sizeof(*card));
	card->fd = -1;
	snprintf(card->name, sizeof(card->name), "%.*s", (int)strcspn(name, ","), name);
	ret = context_open(card, found, error);
	if (ret == 0)
		ret = capabilities_read(card, error);
	if (ret == 0)
		ret = domain_create(card, error);
	if (ret == 0 && mlx5dv_devx_query_eqn(card->context, 0, &card->event_queue) != 0)
		ret = error_set(error, -EIO, "port %s: the kernel names no event queue: %s",
				card->name, strerror(errno));
	if (ret == 0)
		ret = devx_uar_create(card, &card->uar, error);
	if (ret < 0)
		devx_close(card);
	return ret;
}

void devx_close(struct devx_card *card)
{
	if (!card->context)
		return;
	if (card->fd >= 0)
		close(card->fd);
	devx_uar_destroy(&card->uar);
	if (card->pd)
		ibv_dealloc_pd(card->pd);
	ibv_close_device(card->context);
	memset(card, 0, sizeof(*card));
	card->fd = -1;
}

/* ---- to the driver ---- */

int devx_devargs(struct devx_card *card, const char *opened, char *out, size_t bytes,
		 struct gdrcap_error *error)
{
	int written;

	/* The driver closes what it is given. */
	if (card->fd < 0)
		card->fd = fcntl(card->context->cmd_fd, F_DUPFD_CLOEXEC, 0);
	if (card->fd < 0)
		return error_set(error, -errno,
				 "port %s: no file descriptor for the driver: %s (ulimit -n)",
				 card->name, strerror(errno));
	written = snprintf(out, bytes, "%s,cmd_fd=%d,pd_handle=%u", opened, card->fd,
			   card->pd->handle);
	if (written < 0 || (size_t)written >= bytes)
		return error_set(error, -ENAMETOOLONG, "port %s: its arguments are too long",
				 card->name);
	return 0;
}

void devx_probed(struct devx_card *card, bool opened)
{
	if (card->fd < 0)
		return;
	/*
	 * A driver that imported the context closes the descriptor with it. One that gave up before
	 * has left it open or closed it, and then the number may be another file's by now: where the
	 * kernel does not say that it is still ours, it stays as it is.
	 */
	if (!opened &&
	    syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, card->fd, card->context->cmd_fd) == 0)
		close(card->fd);
	card->fd = -1;
}

/* ---- memory ---- */

static struct mlx5dv_devx_umem *umem_register(struct devx_card *card,
					      const struct dmabuf_memory *memory, int fd)
{
#ifdef GDRCAP_UMEM_EX
	struct mlx5dv_devx_umem_in in = {
		.addr = memory->base,
		.size = memory->bytes,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = ~(uint64_t)(PAGE - 1),
	};

	if (fd >= 0) {
		in.addr = NULL; /* from the dma-buf's start */
		in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
		in.dmabuf_fd = fd;
		return mlx5dv_devx_umem_reg_ex(card->context, &in);
	}
#endif
	return mlx5dv_devx_umem_reg(card->context, memory->base, memory->bytes,
				    IBV_ACCESS_LOCAL_WRITE);
}

/* As a dma-buf: 0 or a negative errno. */
static int umem_by_dmabuf(struct devx_card *card, struct devx_umem *umem,
			  const struct dmabuf_memory *memory)
{
	int fd, code;

#ifndef GDRCAP_UMEM_EX
	return -ENOSYS;
#endif
	fd = memory->export_fd(memory->context, memory->base, memory->bytes);
	if (fd < 0)
		return fd;
	errno = 0;
	umem->handle = umem_register(card, memory, fd);
	code = umem->handle ? 0 : errno ? -errno : -EIO;
	close(fd); /* the registration holds the memory */
	umem->dmabuf = code == 0;
	return code;
}

int devx_umem_create(struct devx_card *card, struct devx_umem *umem,
		     const struct dmabuf_memory *memory, const char *what,
		     struct gdrcap_error *error)
{
	int by_dmabuf = 0, by_address;

	memset(umem, 0, sizeof(*umem));
	if (memory->export_fd)
		by_dmabuf = umem_by_dmabuf(card, umem, memory);
	if (!umem->handle) {
		errno = 0;
		umem->handle = umem_register(card, memory, -1);
	}
	if (umem->handle) {
		umem->number = umem->handle->umem_id;
		return 0;
	}
	by_address = errno ? errno : EIO;
	if (!memory->export_fd)
		return error_set(error, -by_address,
				 "port %s: the card cannot reach the memory of %s, %zu bytes: %s "
				 "(raise the locked-memory limit, ulimit -l unlimited)",
				 card->name, what, memory->bytes, strerror(by_address));
	return error_set(
		error, -by_address,
		"port %s: the card cannot reach the GPU memory of %s, %zu bytes: as dma-buf: %s%s; by "
		"address: %s (load the peer memory module, modprobe nvidia-peermem; rings take it "
		"with MLNX_OFED or Ubuntu's kernel alone)",
		card->name, what, memory->bytes,
		by_dmabuf == -ENOSYS ? "not in this build" : strerror(-by_dmabuf),
		by_dmabuf == -ENOSYS
			? " (libmlx5 of rdma-core 43 or later)"
			: " (needs NVIDIA's open kernel modules and Linux 6.1 or later)",
		strerror(by_address));
}

void devx_umem_destroy(struct devx_umem *umem)
{
	if (umem->handle)
		mlx5dv_devx_umem_dereg(umem->handle);
	memset(umem, 0, sizeof(*umem));
}

int devx_key_create(struct devx_card *card, struct ibv_mr **mr, void *base, size_t bytes,
		    struct gdrcap_error *error)
{
	char why[700];
	int code;

	errno = 0;
	/* Led through dmabuf.c, as the driver's own registrations are. */
	*mr = ibv_reg_mr_iova2(card->pd, base, bytes, (uintptr_t)base, IBV_ACCESS_LOCAL_WRITE);
	if (*mr)
		return 0;
	code = errno ? errno : EIO;
	dmabuf_explain(base, why, sizeof(why));
	return error_set(error, -code,
			 "port %s: the card cannot reach the frames' memory, %zu bytes: %s; %s",
			 card->name, bytes, strerror(code), why);
}

int devx_key_destroy(struct ibv_mr **mr)
{
	int code = *mr ? ibv_dereg_mr(*mr) : 0;

	*mr = NULL;
	return -code;
}

/* ---- doorbell registers ---- */

int devx_uar_create(struct devx_card *card, struct mlx5dv_devx_uar **uar,
		    struct gdrcap_error *error)
{
	/* Not cached where there is one: a register of the other kind combines writes. */
	*uar = mlx5dv_devx_alloc_uar(card->context, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!*uar)
		*uar = mlx5dv_devx_alloc_uar(card->context, MLX5DV_UAR_ALLOC_TYPE_BF);
	if (*uar)
		return 0;
	return error_set(error, errno ? -errno : -ENOMEM,
			 "port %s: the kernel gives no page of doorbell registers: %s; other "
			 "processes on this card may hold them",
			 card->name, strerror(errno));
}

void devx_uar_destroy(struct mlx5dv_devx_uar **uar)
{
	if (*uar)
		mlx5dv_devx_free_uar(*uar);
	*uar = NULL;
}
