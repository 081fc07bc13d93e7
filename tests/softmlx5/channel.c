/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channels for the events of completion queues, which the driver sleeps on: by Verbs and by DevX.
 *
 * The driver arms a queue with a doorbell: the entry that it looks at next, and a number that it
 * raises with each event that it has taken. The card sends one event for each number, when an entry
 * is there that the driver had not seen when it armed the queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "devx_fields.h"
#include "nic.h"
#include "queues.h"

#define ARM_NUMBER_SHIFT 28
#define ENTRY_MASK 0xffffffu

struct soft_channel {
	struct soft_device *device;
	struct ibv_comp_channel ibv;
	struct mlx5dv_devx_event_channel dv;
	int fd;		 /* holds the number of events that the driver has not taken */
	uint64_t cookie; /* DevX: of the one queue that the driver has on a channel */
	struct soft_cq *cq;
};

static struct soft_channel *channel_create(struct ibv_context *context)
{
	struct soft_device *device = soft_device(context);
	struct soft_channel *channel;
	bool refuse;

	nic_lock();
	refuse = soft_fault(&device->faults.refuse_channel);
	nic_unlock();
	errno = ENOMEM;
	channel = refuse ? NULL : calloc(1, sizeof(*channel));
	if (channel == NULL)
		return NULL;
	channel->device = device;
	channel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	channel->ibv = (struct ibv_comp_channel){ .context = context, .fd = channel->fd };
	channel->dv.fd = channel->fd;
	if (channel->fd >= 0)
		return channel;
	free(channel);
	return NULL;
}

static void channel_destroy(struct soft_channel *channel)
{
	close(channel->fd);
	free(channel);
}

void channel_attach(struct soft_channel *channel, struct soft_cq *cq)
{
	cq->channel = channel;
	channel->cq = cq;
}

/* The queue of the oldest event; NULL with errno set: there is none. */
static struct soft_cq *channel_take(struct soft_channel *channel)
{
	eventfd_t one;

	if (eventfd_read(channel->fd, &one) != 0)
		return NULL;
	nic_lock();
	channel->device->count.interrupts++;
	nic_unlock();
	return channel->cq;
}

void cq_look(struct soft_cq *cq)
{
	if (!cq->armed || ((cq->next - cq->armed_at) & ENTRY_MASK) == 0)
		return;
	cq->armed = false;
	cq->fired = true;
	eventfd_write(cq->channel->fd, 1);
}

void cq_arm(struct soft_cq *cq)
{
	uint32_t record;
	uint8_t number;

	if (cq->channel == NULL)
		return;
	record = be32toh(cq->record[1]);
	number = (uint8_t)(record >> ARM_NUMBER_SHIFT & 3);
	if (cq->fired && number == cq->fired_arm)
		return;
	cq->armed = true;
	cq->fired = false;
	cq->fired_arm = number;
	cq->armed_at = record & ENTRY_MASK;
	cq_look(cq);
}

/* ---- Verbs ---- */

static struct soft_channel *verbs_channel(struct ibv_comp_channel *ibv)
{
	return container(ibv, struct soft_channel, ibv);
}

void channel_attach_verbs(struct ibv_comp_channel *ibv, struct soft_cq *cq)
{
	if (ibv != NULL)
		channel_attach(verbs_channel(ibv), cq);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct soft_channel *channel = channel_create(context);

	return channel != NULL ? &channel->ibv : NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	channel_destroy(verbs_channel(channel));
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct soft_cq *found = channel_take(verbs_channel(channel));

	if (found == NULL)
		return -1;
	*cq = ibv_cq_ex_to_cq(&found->ibv);
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
}

/* ---- DevX ---- */

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
				 enum mlx5dv_devx_create_event_channel_flags flags)
{
	struct soft_channel *channel = channel_create(context);

	return channel != NULL ? &channel->dv : NULL;
}

void mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *event_channel)
{
	channel_destroy(container(event_channel, struct soft_channel, dv));
}

/* The driver asks for events of other objects, too, which the model never has. */
int mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *event_channel,
				     struct mlx5dv_devx_obj *obj, uint16_t events_sz,
				     uint16_t events_num[], uint64_t cookie)
{
	struct soft_channel *channel = container(event_channel, struct soft_channel, dv);

	if (obj == NULL || obj->kind != CREATE_CQ)
		return 0;
	nic_lock();
	channel->cookie = cookie;
	channel_attach(channel, obj->content);
	nic_unlock();
	return 0;
}

ssize_t mlx5dv_devx_get_event(struct mlx5dv_devx_event_channel *event_channel,
			      struct mlx5dv_devx_async_event_hdr *event_data, size_t event_resp_len)
{
	struct soft_channel *channel = container(event_channel, struct soft_channel, dv);

	if (channel_take(channel) == NULL)
		return -1;
	event_data->cookie = channel->cookie;
	return sizeof(*event_data);
}
