/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the calls of the reference build on; see reference_rules.c. */
#ifndef COLUMNS_REFERENCE_RULES_H
#define COLUMNS_REFERENCE_RULES_H

#include "reference.h"

/* the call of @i ends, and its caller is told */
void reference_finish(struct reference *r, int i, int result);

/* can what the others hold come back, and be enough? */
bool reference_could_ever_fit(const struct reference *r, int i, u32 columns);
/* would it be met, came it now? */
bool reference_would_be_met(const struct reference *r, int i);

void reference_drop_permit(struct reference *r, int i);
void reference_enqueue(struct reference *r, int i);
/* what the call of @i, and of a peer that has joined it, has got so far */
void reference_withdraw(struct reference *r, int i);
/* an allocation it is once every side has its address */
bool reference_commit(struct reference *r, int i);
/* whoever can be served is, and who waits for ever is resolved */
void reference_after_event(struct reference *r);

#endif /* COLUMNS_REFERENCE_RULES_H */
