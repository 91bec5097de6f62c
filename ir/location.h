/* SPDX-License-Identifier: Apache-2.0 */
/*
 * location.h: places in the source of the host and names of values, as the rest of ir/ sees them;
 * see location.c.
 */
#ifndef QN_IR_LOCATION_H
#define QN_IR_LOCATION_H

#include "ir/ir.h"

/** A place. `file` is a number in the pool of texts, 0 without one. */
struct qn_location {
    uint32_t file;
    int32_t line, column;
};

/** What a finished kernel knows of places and names. */
struct qn_locations {
    qn_location *place;
    uint32_t *place_of; /* [n_insts]: 1 + number of the place; 0: none */
    uint32_t *name_of;  /* [n_insts]: number in the pool; 0: none */
    qn_text pool;       /* zero-terminated texts; a number is an offset */
};

/** Moves the places of live instructions to their new numbers in k. False without memory. */
bool qn__locations_take(qn_builder *b, qn_kernel *k, const uint8_t *live, const uint32_t *number);
void qn__locations_free(qn_locations *p);
/** The place of instruction i, if it has one. *file may become NULL. */
bool qn__location_of(const qn_kernel *k, uint32_t i, const char **file, int *line, int *column);
/** The name of value i, or NULL. */
const char *qn__name_of(const qn_kernel *k, uint32_t i);
const char *qn__builder_name_of(const qn_builder *b, uint32_t i);
/** What is built now belongs to the place of instruction i of k, if that has one. */
void qn__location_repeat(qn_builder *b, const qn_kernel *k, uint32_t i);
/** Appends "; at FILE:LINE:COLUMN" for an instruction, or for the current place of a builder.
 * Returns the line; without a place appends nothing and returns 0. */
int qn__text_location(qn_text *t, const qn_kernel *k, uint32_t i);
/** Appends the place of instruction i to the message of an error. */
void qn__error_location(qn_error *err, const qn_kernel *k, uint32_t i);
int qn__text_current_location(qn_text *t, const qn_builder *b);

#endif
