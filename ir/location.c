/* SPDX-License-Identifier: Apache-2.0 */
/*
 * location.c: places in the source of the host, and names of values. A builder keeps a list of
 * places and a pool of texts; each instruction has the number of its place and of its name, 0 for
 * none. A finished kernel takes both along. Kernels that are made of kernels get the places of what
 * they repeat (replay.c), so that a failure in inlined code is found in the source, too.
 */
#include "quern/embed.h"

#include "ir/build/builder.h"
#include "ir/location.h"

#include <string.h>

/** The number of a text in the pool, entered where it is not the last one; 0 without memory. */
static uint32_t enter_text(qn_text *pool, uint32_t last, const char *text)
{
    if (last && strcmp(pool->data + last, text) == 0)
        return last;
    if (pool->n == 0)
        qn__text_bytes(pool, "", 1); /* number 0 is no text */
    uint32_t at = (uint32_t)pool->n;
    qn__text_bytes(pool, text, strlen(text) + 1);
    return pool->failed ? 0 : at;
}

static void add_place(qn_builder *b, const char *who, const char *file, int line, int column)
{
    qn_location last = {0}, place = {.line = line, .column = column};
    if (b->n_places)
        last = b->place[b->n_places - 1];
    if (file) {
        place.file = enter_text(&b->pool, last.file, file);
        if (!place.file) {
            qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
            return;
        }
    }
    if (b->n_places && memcmp(&last, &place, sizeof last) == 0) {
        b->current = b->n_places;
        return;
    }
    if ((b->n_places & (b->n_places - 1)) == 0) { /* full: capacities are powers of two */
        size_t capacity = b->n_places ? 2 * (size_t)b->n_places : 1;
        qn_location *grown = qn__realloc(b->place, capacity * sizeof *grown);
        if (!grown) {
            qn__builder_fail(b, QN_ERR_MEMORY, "%s: out of memory", who);
            return;
        }
        b->place = grown;
    }
    b->place[b->n_places++] = place;
    b->current = b->n_places;
}

void qn_builder_at(qn_builder *b, const char *file, int line, int column)
{
    if (!qn__builder_ready(b, "qn_builder_at"))
        return;
    if (line < 0 || column < 0)
        qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_builder_at: line %d, column %d", line, column);
    else if (line == 0)
        b->current = 0;
    else
        add_place(b, "qn_builder_at", file, line, column);
}

void qn_builder_name(qn_builder *b, qn_val x, const char *name)
{
    if (!qn__builder_ready(b, "qn_builder_name") || x.id == 0)
        return;
    if (!name) {
        qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_builder_name: name is NULL");
        return;
    }
    uint32_t i = qn__number(x);
    if (x.builder != b->number || i >= b->n_insts) {
        qn__builder_fail(b, QN_ERR_BUILD,
                         "qn_builder_name: \"%.60s\" is a value of another builder", name);
        return;
    }
    if (b->note[i].name)
        return;
    b->note[i].name = enter_text(&b->pool, 0, name);
    b->has_names = true;
    if (!b->note[i].name)
        qn__builder_fail(b, QN_ERR_MEMORY, "qn_builder_name: out of memory");
}

const char *qn__builder_name_of(const qn_builder *b, uint32_t i)
{
    return b->note[i].name && !b->pool.failed ? b->pool.data + b->note[i].name : NULL;
}

/* ---------------------------------------------------------------- kernels */

bool qn__locations_take(qn_builder *b, qn_kernel *k, const uint8_t *live, const uint32_t *number)
{
    if (b->n_places == 0 && !b->has_names)
        return true;
    qn_locations *p = qn__zalloc(1, sizeof *p);
    k->locations = p;
    if (!p)
        return false;
    p->place_of = qn__zalloc(k->n_insts, sizeof *p->place_of);
    p->name_of = qn__zalloc(k->n_insts, sizeof *p->name_of);
    if (!p->place_of || !p->name_of)
        return false;
    for (uint32_t i = 1; i < b->n_insts; i++)
        if (live[i]) {
            p->place_of[number[i]] = b->note[i].place;
            p->name_of[number[i]] = b->note[i].name;
        }
    p->place = b->place;
    p->pool = b->pool;
    b->place = NULL;
    b->pool = (qn_text){0};
    b->n_places = b->current = 0;
    return true;
}

void qn__locations_free(qn_locations *p)
{
    if (!p)
        return;
    qn__free(p->place_of);
    qn__free(p->name_of);
    qn__free(p->place);
    qn__text_release(&p->pool);
    qn__free(p);
}

bool qn__location_of(const qn_kernel *k, uint32_t i, const char **file, int *line, int *column)
{
    const qn_locations *p = k->locations;
    if (!p || i >= k->n_insts || p->place_of[i] == 0)
        return false;
    const qn_location *place = &p->place[p->place_of[i] - 1];
    *file = place->file ? p->pool.data + place->file : NULL;
    *line = place->line;
    *column = place->column;
    return true;
}

const char *qn__name_of(const qn_kernel *k, uint32_t i)
{
    const qn_locations *p = k->locations;
    return p && i < k->n_insts && p->name_of[i] ? p->pool.data + p->name_of[i] : NULL;
}

void qn__location_repeat(qn_builder *b, const qn_kernel *k, uint32_t i)
{
    const char *file;
    int line, column;
    if (b->error.status == QN_OK && qn__location_of(k, i, &file, &line, &column))
        add_place(b, "qn_finish", file, line, column);
}

/* ---------------------------------------------------------------- messages */

static void add_text(qn_text *t, const char *file, int line, int column)
{
    qn__text_add(t, "; at %s%s%d", file ? file : "line ", file ? ":" : "", line);
    if (column)
        qn__text_add(t, file ? ":%d" : ", column %d", column);
}

int qn__text_location(qn_text *t, const qn_kernel *k, uint32_t i)
{
    const char *file;
    int line = 0, column;
    if (qn__location_of(k, i, &file, &line, &column))
        add_text(t, file, line, column);
    return line;
}

void qn__error_location(qn_error *err, const qn_kernel *k, uint32_t i)
{
    qn_text t = {0};
    int line = err ? qn__text_location(&t, k, i) : 0;
    if (line && t.data && !t.failed) {
        size_t n = strlen(err->message), room = sizeof err->message - 1 - n;
        size_t added = t.n < room ? t.n : room;
        memcpy(err->message + n, t.data, added);
        err->message[n + added] = 0;
        err->line = line;
    }
    qn__text_release(&t);
}

int qn__text_current_location(qn_text *t, const qn_builder *b)
{
    if (b->current == 0)
        return 0;
    const qn_location *place = &b->place[b->current - 1];
    add_text(t, place->file ? b->pool.data + place->file : NULL, place->line, place->column);
    return place->line;
}
