// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: the columns of an SM are free, or each belongs to a CTA. The lines of an SM
 * belong to one moment.
 */
#include "check.h"
#include "tmem.h"

static unsigned int columns_of(const struct tmem_sm *sm, char letter)
{
	unsigned int columns = 0;
	const char *unit;

	for (unit = sm->units; *unit; unit++)
		columns += *unit == letter ? UNIT_COLUMNS : 0;
	return columns;
}

static void check_sm(struct findings *f, const struct tmem *t,
		     const struct tmem_sm *sm)
{
	unsigned int held = 0;
	size_t i;

	for (i = 0; i < sm->nr_ctas; i++) {
		const struct tmem_cta *cta = &sm->ctas[i];

		if (cta->waits)
			continue;
		held += cta->columns;
		if (cta->letter != MANY && cta->letter != '-' &&
		    columns_of(sm, cta->letter) != cta->columns)
			finding_add(f, ONE_MOMENT, "tmem", t->device,
				    "context %llu, SM %u: CTA %llu holds %u columns, and the picture has %u",
				    (unsigned long long)t->context, sm->number,
				    (unsigned long long)cta->id, cta->columns,
				    columns_of(sm, cta->letter));
	}
	if (held + sm->free != sm->columns || columns_of(sm, '.') != sm->free)
		finding_add(f, ONE_MOMENT, "tmem", t->device,
			    "context %llu, SM %u: %u columns are held and %u are free, of %u",
			    (unsigned long long)t->context, sm->number, held,
			    sm->free, sm->columns);
}

void check_tmem(struct findings *f, const struct device *d)
{
	struct tmem *tmems = NULL;
	size_t nr = 0, i, n;

	tmem_read(&tmems, &nr, d->name);
	for (i = 0; i < nr; i++) {
		for (n = 0; n < tmems[i].nr_sms; n++)
			check_sm(f, &tmems[i], &tmems[i].sms[n]);
	}
	tmem_free(tmems, nr);
}
