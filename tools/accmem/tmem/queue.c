// SPDX-License-Identifier: GPL-2.0
/* Queue of the moments at which CTAs are due: a binary heap. */
#include "tmem.h"

static bool is_before(const struct moment *a, const struct moment *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return a->line < b->line;
}

static void swap(struct moment *a, struct moment *b)
{
	struct moment m = *a;

	*a = *b;
	*b = m;
}

void queue_push(struct queue *q, struct moment m)
{
	size_t i = q->nr++;

	if (i == q->room) {
		q->room = q->room ? 2 * q->room : 64;
		q->moments = resize(q->moments, q->room, sizeof(*q->moments));
	}
	q->moments[i] = m;
	for (; i && is_before(&q->moments[i], &q->moments[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&q->moments[i], &q->moments[(i - 1) / 2]);
}

bool queue_pop(struct queue *q, struct moment *m)
{
	size_t i = 0, child;

	if (!q->nr)
		return false;
	*m = q->moments[0];
	q->moments[0] = q->moments[--q->nr];
	while ((child = 2 * i + 1) < q->nr) {
		if (child + 1 < q->nr &&
		    is_before(&q->moments[child + 1], &q->moments[child]))
			child++;
		if (!is_before(&q->moments[child], &q->moments[i]))
			break;
		swap(&q->moments[i], &q->moments[child]);
		i = child;
	}
	return true;
}
