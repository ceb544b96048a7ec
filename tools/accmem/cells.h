/* SPDX-License-Identifier: GPL-2.0 */
/*
 * accmem map: owners of a device's memory, and a carveout in cells of equal size.
 */
#ifndef ACCMEM_TOOL_CELLS_H
#define ACCMEM_TOOL_CELLS_H

#include "accmem.h"

#define NO_OWNER SIZE_MAX

/* A part of a carveout: the used run that has the most bytes of it */
struct cell {
	enum run_state state; /* RUN_FREE if no run is used */
	size_t owner; /* NO_OWNER for free and retired memory */
	uint64_t bytes;
};

struct picture {
	const struct device *device;
	const struct snapshot *s;
	struct run *runs;
	size_t nr_runs;
	struct owner *owners; /* the one with the most memory first */
	size_t nr_owners;
};

bool picture_read(struct picture *p, const struct snapshot *s,
		  const struct device *d);
void picture_free(struct picture *p);
struct cell *picture_cells(const struct picture *p, unsigned int carveout,
			   size_t most, uint64_t *bytes, size_t *nr);
char *owner_text(const struct picture *p, const struct owner *o);
unsigned int picture_carveouts(const struct picture *p);
uint64_t picture_capacity(const struct picture *p, unsigned int carveout);

/* Pictures of characters: accmem map without --svg */
struct glyph {
	char letter;
	enum color color;
};

size_t row_cells(void);
void print_glyphs(const char *device, unsigned int carveout, uint64_t bytes,
		  const struct glyph *glyphs, size_t nr);

void owners_print(const struct picture *p);
void states_print(const struct picture *p);
void states_legend(void);
void svg_print(const struct picture *p);

#endif /* ACCMEM_TOOL_CELLS_H */
