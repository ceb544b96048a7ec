// SPDX-License-Identifier: GPL-2.0
/*
 * Read `tmem` in debugfs: a line for each context, then for each SM a picture, a line for
 * each CTA that holds columns or the permit, and a line for each request that waits.
 *
 * A user who may not read debugfs may read the fdinfo of the CTAs of the own processes, which
 * has the number of columns that a CTA holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tmem.h"

/* "context 7: shared, bypass bound 64[, strict]" */
static bool context_parse(struct tmem *t, const char *line)
{
	unsigned long long context;
	char discipline[16];

	if (sscanf(line, "context %llu: %15[a-z], bypass bound %u", &context,
		   discipline, &t->bound) != 3)
		return false;
	t->context = context;
	t->known = true;
	t->exclusive = !strcmp(discipline, "exclusive");
	t->strict = strstr(line, ", strict");
	return true;
}

/* "SM 0 |aaaaaaaabb......| 192 of 512 columns free" */
static bool sm_parse(struct tmem_sm *sm, const char *line)
{
	char units[65];

	if (sscanf(line, "SM %u |%64[^|]| %u of %u columns free", &sm->number,
		   units, &sm->free, &sm->columns) != 4)
		return false;
	sm->units = format("%s", units);
	return true;
}

/*
 * "  a CTA 1 launch 0x1 cluster 0 rank 0 holds 256 columns[, permit]", or
 * "  ? CTA 2 launch 0x1 cluster 0 rank 1 waits for 512 columns, bypassed 1 of 64, 40000 us"
 */
static bool cta_parse(struct tmem_cta *cta, const char *line)
{
	unsigned long long id, launch, us;
	int end = 0;

	if (sscanf(line, "  %c CTA %llu launch %llx cluster %u rank %u %n",
		   &cta->letter, &id, &launch, &cta->cluster, &cta->rank,
		   &end) != 5 ||
	    !end)
		return false;
	cta->id = id;
	cta->launch = launch;
	if (sscanf(line + end, "waits for %u columns, bypassed %u of %*u, %llu",
		   &cta->columns, &cta->bypassed, &us) == 3) {
		cta->waits = true;
		cta->us = us;
		return true;
	}
	cta->permit = strstr(line + end, ", permit");
	return sscanf(line + end, "holds %u columns", &cta->columns) == 1;
}

static void add_line(struct tmem **tmems, size_t *nr, const char *device,
		     const char *line)
{
	struct tmem context = { 0 }, *t = *nr ? &(*tmems)[*nr - 1] : NULL;
	struct tmem_sm sm = { 0 }, *last;
	struct tmem_cta cta = { 0 };

	if (context_parse(&context, line)) {
		copy_word(context.device, sizeof(context.device), device);
		*tmems = grow(*tmems, *nr, sizeof(**tmems));
		(*tmems)[(*nr)++] = context;
	} else if (t && sm_parse(&sm, line)) {
		t->sms = grow(t->sms, t->nr_sms, sizeof(*t->sms));
		t->sms[t->nr_sms++] = sm;
	} else if (t && t->nr_sms && cta_parse(&cta, line)) {
		last = &t->sms[t->nr_sms - 1];
		last->ctas =
			grow(last->ctas, last->nr_ctas, sizeof(*last->ctas));
		last->ctas[last->nr_ctas++] = cta;
	}
}

/* Add the Tensor Memory of a device. Return false if the file cannot be read. */
bool tmem_read(struct tmem **tmems, size_t *nr, const char *device)
{
	char *text = read_text(DEBUGFS "/%s/tmem", device), *line, *save;

	if (!text)
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		add_line(tmems, nr, device, line);
	free(text);
	return true;
}

static struct tmem *own_context(struct tmem **tmems, size_t *nr,
				const char *device, uint64_t context)
{
	struct tmem *t;
	size_t i;

	for (i = 0; i < *nr; i++) {
		t = &(*tmems)[i];
		if (t->context == context && !strcmp(t->device, device))
			return t;
	}
	*tmems = grow(*tmems, *nr, sizeof(**tmems));
	t = &(*tmems)[(*nr)++];
	copy_word(t->device, sizeof(t->device), device);
	t->context = context;
	return t;
}

static struct tmem_sm *own_sm(struct tmem *t, unsigned int number)
{
	struct tmem_sm *sm;
	size_t i;

	for (i = 0; i < t->nr_sms; i++) {
		if (t->sms[i].number == number)
			return &t->sms[i];
	}
	t->sms = grow(t->sms, t->nr_sms, sizeof(*t->sms));
	sm = &t->sms[t->nr_sms++];
	sm->number = number;
	return sm;
}

struct own {
	struct tmem **tmems;
	size_t *nr;
	const char *device;
};

static uint64_t own_number(const char *fdinfo, const char *key)
{
	const char *value = fdinfo_value(fdinfo, key);

	return value ? strtoull(value, NULL, 0) : 0;
}

/* Several processes may have the file of a CTA open. */
static void add_own(pid_t pid, const char *fdinfo, void *arg)
{
	const char *name = fdinfo_value(fdinfo, "device");
	struct tmem_cta cta = {
		.letter = '-',
		.id = own_number(fdinfo, "cta"),
		.launch = own_number(fdinfo, "launch"),
		.cluster = own_number(fdinfo, "cluster"),
		.rank = own_number(fdinfo, "rank"),
		.columns = own_number(fdinfo, "held"),
	};
	struct own *own = arg;
	struct tmem_sm *sm;
	char device[16];
	size_t i;

	(void)pid;
	copy_word(device, sizeof(device), name ? name : "");
	if (strcmp(device, own->device))
		return;
	sm = own_sm(own_context(own->tmems, own->nr, device,
				own_number(fdinfo, "context")),
		    own_number(fdinfo, "sm"));
	for (i = 0; i < sm->nr_ctas; i++) {
		if (sm->ctas[i].id == cta.id)
			return;
	}
	sm->ctas = grow(sm->ctas, sm->nr_ctas, sizeof(*sm->ctas));
	sm->ctas[sm->nr_ctas++] = cta;
}

static bool is_cta(const char *link)
{
	return !strcmp(link, "anon_inode:[accmem-cta]");
}

/* Add what the CTAs of the caller's processes hold. */
void tmem_read_own(struct tmem **tmems, size_t *nr, const char *device)
{
	struct own own = { .tmems = tmems, .nr = nr, .device = device };

	fdinfo_walk(is_cta, add_own, &own);
}

void tmem_free(struct tmem *tmems, size_t nr)
{
	size_t i, n;

	for (i = 0; i < nr; i++) {
		for (n = 0; n < tmems[i].nr_sms; n++) {
			free(tmems[i].sms[n].units);
			free(tmems[i].sms[n].ctas);
		}
		free(tmems[i].sms);
	}
	free(tmems);
}
