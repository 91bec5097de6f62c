/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c: reads case files (docs/testing.md) and makes the views and data of their cases.
 */
#include "tests/run/run_cases.h"
#include "tests/run/reader.h"
#include "tests/dtypes.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 64, GUARD = 0xa5 };

/* ---------------------------------------------------------------- views */

bool case_next_index(const qn_layout *l, int64_t *index)
{
    for (int d = l->rank - 1; d >= 0; d--) {
        if (++index[d] < l->dim[d].lower + l->dim[d].extent)
            return true;
        index[d] = l->dim[d].lower;
    }
    return false;
}

/** Applies one layout word, `name(numbers)`, to *l; false if it is none. */
static bool take_layout(reader *r, int rank, const int64_t *extents, qn_layout *l)
{
    static const char *const names[] = {
        "right",    "left",  "projected", "morton",  "strides",   "ordered", "tiled", "padded",
        "permuted", "lower", "permute",   "reverse", "broadcast", "range",   "split", "merge"};
    enum {
        RIGHT,
        LEFT,
        PROJECTED,
        MORTON,
        STRIDES,
        ORDERED,
        TILED,
        PADDED,
        PERMUTED,
        LOWER,
        PERMUTE,
        REVERSE,
        BROADCAST,
        RANGE,
        SPLIT,
        MERGE,
        N_NAMES
    };
    int which = 0, small[QN_MAX_RANK];
    int64_t n[QN_MAX_RANK] = {0};
    while (which < N_NAMES && !reader_take(r, names[which]))
        which++;
    if (which == N_NAMES)
        return false;
    if (which > MORTON) {
        int count = reader_list(r, "(", ")", n);
        for (int i = 0; i < count; i++)
            small[i] = (int)n[i];
    }
    qn_layout old = *l;
    qn_error err = {0};
    qn_slice slice[QN_MAX_RANK] = {{0}};
    slice[n[0] & (QN_MAX_RANK - 1)] = (qn_slice){QN_RANGE, n[1], n[2], n[3]};
    switch (which) {
    case RIGHT: qn_layout_right(rank, extents, l, &err); break;
    case LEFT: qn_layout_left(rank, extents, l, &err); break;
    case PROJECTED: qn_layout_projected(rank, extents, l, &err); break;
    case MORTON: qn_layout_morton(rank, extents, NULL, l, &err); break;
    case STRIDES: qn_layout_strided(rank, extents, n, l, &err); break;
    case ORDERED: qn_layout_ordered(rank, extents, small, l, &err); break;
    case TILED: qn_layout_tiled(rank, extents, n, NULL, NULL, l, &err); break;
    case PADDED: qn_layout_right_padded(rank, extents, n[0], l, &err); break;
    case PERMUTED: qn_layout_permuted(rank, extents, small, l, &err); break;
    case LOWER: qn_layout_offset(&old, n, l, &err); break;
    case PERMUTE: qn_layout_permute(&old, small, l, &err); break;
    case REVERSE: qn_layout_reverse(&old, small[0], l, &err); break;
    case BROADCAST: qn_layout_broadcast(&old, small[0], n[1], l, &err); break;
    case RANGE: qn_layout_slice(&old, old.rank, slice, l, &err); break;
    case SPLIT: qn_layout_split(&old, small[0], n[1], l, &err); break;
    case MERGE: qn_layout_merge(&old, small[0], l, &err); break;
    }
    if (err.status)
        reader_stop(r, "%s", err.message);
    qn_layout_release(&old);
    return true;
}

static bool take_trait(reader *r, uint32_t *traits)
{
    static const char *const names[] = {"read_only",     "atomic",  "restrict",
                                        "random_access", "aligned", "streaming",
                                        "unchecked",     "clamped"};
    for (int i = 0; i < 8; i++)
        if (reader_take(r, names[i])) {
            *traits |= 1u << i;
            return true;
        }
    return false;
}

static int take_dtype(reader *r)
{
    char name[8];
    reader_word(r, "[=", name, sizeof name);
    int dtype = (int)qn_dtype_of_name(name);
    if (dtype == QN_VOID)
        reader_stop(r, "unknown dtype %s", name);
    else if (dtype == QN_C128) /* data and comparisons have 64 bits for an element */
        reader_stop(r, "views of %s have elements of 16 bytes, and cases at most 8", name);
    return dtype;
}

static int find_binding(reader *r, const case_instance *c, const char *name)
{
    for (int i = 0; i < c->n_bindings; i++)
        if (strcmp(c->binding[i].name, name) == 0)
            return i;
    reader_stop(r, "unknown name %s", name);
}

/** `list(DIMENSION,NAME)`: an index list, a view above; false if it does not come next. */
static bool take_list(reader *r, const case_instance *c, qn_layout *l)
{
    char name[32];
    qn_error err = {0};
    if (!reader_take(r, "list"))
        return false;
    reader_expect(r, "(");
    int d = (int)reader_integer(r);
    reader_expect(r, ",");
    reader_word(r, ")", name, sizeof name);
    reader_expect(r, ")");
    if (qn_layout_list(l, d, &c->binding[find_binding(r, c, name)].view, l, &err) != QN_OK)
        reader_stop(r, "%s", err.message);
    return true;
}

/** `multi(NAME,NAME,...) at POSITION`: views above as members; false if it does not come next. */
static bool take_multi(reader *r, case_instance *c, case_binding *b)
{
    qn_view member[MAX_BINDINGS];
    char name[32];
    qn_error err = {0};
    int n = 0;
    if (!reader_take(r, "multi"))
        return false;
    for (reader_expect(r, "("); !reader_take(r, ")"); reader_take(r, ",")) {
        if (n == MAX_BINDINGS)
            reader_stop(r, "too many members");
        reader_word(r, ",)", name, sizeof name);
        member[n++] = c->binding[find_binding(r, c, name)].view;
    }
    reader_expect(r, "at");
    b->is_view = 1;
    b->storage = -1; /* that of the members */
    if (qn_view_multi(b->name, n, member, (int)reader_integer(r), &b->view, &err) != QN_OK)
        reader_stop(r, "%s", err.message);
    b->dtype = b->view.dtype;
    c->n_bindings++;
    return true;
}

/** Storage for the layout's span. The pointer is that of offset 0 of the layout. */
static void *new_storage(reader *r, case_instance *c, case_binding *b, const qn_layout *l)
{
    int64_t low = 0, high = -1, bytes = qn_dtype_bytes(b->dtype);
    qn_error err = {0};
    if (qn_layout_range(l, &low, &high, &err) != QN_OK)
        reader_stop(r, "%s", err.message);
    case_storage *s = &c->storage[c->n_storages];
    b->storage = c->n_storages++;
    size_t span = (size_t)((high - low + 1) * bytes);
    s->dtype = b->dtype;
    s->n_bytes = (span + 2 * GUARD_BYTES + 63) / 64 * 64;
    s->bytes = aligned_alloc(64, s->n_bytes);
    s->initial = reader_memory(s->n_bytes);
    s->reference = reader_memory(s->n_bytes);
    if (!s->bytes)
        reader_stop(r, "no memory");
    memset(s->bytes, GUARD, s->n_bytes);
    return s->bytes + GUARD_BYTES - low * bytes;
}

/** `view NAME: DTYPE[EXTENTS] LAYOUT... TRAIT... [shares NAME at OFFSET] [= DATA]`, or `view NAME:
 * multi(..) at N` */
static void read_view(reader *r, case_instance *c)
{
    case_binding *b = &c->binding[c->n_bindings];
    reader_word(r, ":", b->name, sizeof b->name);
    reader_expect(r, ":");
    if (take_multi(r, c, b))
        return;
    b->dtype = take_dtype(r);
    b->is_view = 1;
    int64_t extents[QN_MAX_RANK] = {0};
    int rank = reader_list(r, "[", "]", extents);
    qn_layout l;
    qn_error err = {0};
    uint32_t traits = 0;
    if (qn_layout_right(rank, extents, &l, &err) != QN_OK)
        reader_stop(r, "%s", err.message);
    while (take_layout(r, rank, extents, &l) || take_list(r, c, &l) || take_trait(r, &traits))
        continue;
    void *data;
    if (reader_take(r, "shares")) {
        char name[32];
        reader_word(r, "=", name, sizeof name);
        b->storage = c->binding[find_binding(r, c, name)].storage;
        reader_expect(r, "at");
        data = c->storage[b->storage].bytes + GUARD_BYTES +
               reader_integer(r) * qn_dtype_bytes(b->dtype);
    } else {
        data = new_storage(r, c, b, &l);
    }
    if (qn_view_wrap(b->name, data, b->dtype, &l, traits, &b->view, &err) != QN_OK)
        reader_stop(r, "%s", err.message);
    int64_t n = qn_layout_size(&l), index[QN_MAX_RANK], i = 0;
    if (reader_take(r, "=")) {
        uint64_t *value = reader_memory((size_t)n * sizeof *value);
        reader_data(r, b->dtype, n, value);
        for (int d = 0; d < l.rank; d++)
            index[d] = l.dim[d].lower;
        void *at;
        for (bool more = n > 0; more; more = case_next_index(&l, index)) {
            if (case_address(&b->view, index, &at, &err) != QN_OK)
                reader_stop(r, "%s", err.message);
            memcpy(at, &value[i++], (size_t)qn_dtype_bytes(b->dtype));
        }
        free(value);
    }
    qn_layout_release(&l);
    c->n_bindings++;
}

static void read_scalar(reader *r, case_instance *c)
{
    case_binding *b = &c->binding[c->n_bindings++];
    reader_word(r, ":", b->name, sizeof b->name);
    reader_expect(r, ":");
    b->dtype = take_dtype(r);
    reader_expect(r, "=");
    b->bits = reader_value(r, b->dtype);
}

/* ---------------------------------------------------------------- expectations */

static int find_status(reader *r, const char *name)
{
    for (int s = 0; s < 64; s++)
        if (strcmp(qn_status_name(s), name) == 0)
            return s;
    reader_stop(r, "unknown status %s", name);
}

enum { PART_BYTES = sizeof((case_instance *)0)->part[0] };

/** The rest of a quoted part of a message, or of a line; \" stands for a quote. */
static void take_text(reader *r, char *part)
{
    size_t n = 0;
    for (; *r->at != '"'; r->at++) {
        if (*r->at == '\\')
            r->at++;
        if (*r->at == 0 || n + 1 == PART_BYTES)
            reader_stop(r, "bad part of a message");
        part[n++] = *r->at;
    }
    part[n] = 0;
    r->at++;
}

static void take_part(reader *r, case_instance *c)
{
    if (c->n_parts == MAX_PARTS)
        reader_stop(r, "too many parts");
    take_text(r, c->part[c->n_parts++]);
}

/** `expect NAME = DATA`, `expect same`, `expect error STATUS "part"...`, `expect print "line"...`
 */
static void read_expect(reader *r, case_instance *c)
{
    c->is_expecting = true;
    if (reader_take(r, "same"))
        return;
    char name[32];
    if (reader_take(r, "error")) {
        reader_word(r, "\"", name, sizeof name);
        c->status = find_status(r, name);
        while (reader_take(r, "\""))
            take_part(r, c);
        return;
    }
    if (reader_take(r, "print")) {
        char line[PART_BYTES];
        c->expects_lines = true;
        while (reader_take(r, "\"")) {
            take_text(r, line);
            case_lines_expect(c, line);
        }
        return;
    }
    reader_word(r, "=", name, sizeof name);
    case_binding *b = &c->binding[find_binding(r, c, name)];
    reader_expect(r, "=");
    int64_t n = qn_layout_size(&b->view.layout);
    b->expected = reader_memory((size_t)n * sizeof *b->expected);
    reader_data(r, b->dtype, n, b->expected);
}

static void read_option(reader *r, case_instance *c)
{
    if (reader_take(r, "clamp"))
        c->checks = QN_CHECKS_CLAMP;
    else if (reader_take(r, "strict"))
        c->strict = 1;
    else if (reader_take(r, "races"))
        c->debug |= QN_DEBUG_RACES;
    else if (reader_take(r, "nan"))
        c->debug |= QN_DEBUG_NAN;
    else if (reader_take(r, "lines"))
        c->most_lines = reader_integer(r);
    else
        reader_stop(r, "unknown option");
}

void case_instance_make(const case_file *f, const case_set *set, int64_t value, case_instance *c)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < set->n_lines; i++) {
        reader r = {.file = f,
                    .at = set->line[i],
                    .variable = set->variable,
                    .value = value,
                    .line = set->line_number[i]};
        if (c->n_bindings == MAX_BINDINGS)
            reader_stop(&r, "too many names");
        if (reader_take(&r, "view"))
            read_view(&r, c);
        else if (reader_take(&r, "scalar"))
            read_scalar(&r, c);
        else if (reader_take(&r, "expect"))
            read_expect(&r, c);
        else if (reader_take(&r, "option"))
            read_option(&r, c);
        else
            reader_stop(&r, "expected view, scalar, option or expect");
        if (!reader_at_end(&r))
            reader_stop(&r, "unexpected text");
    }
    if (!c->is_expecting) {
        reader r = {.file = f, .at = set->name};
        reader_stop(&r, "a case that expects nothing");
    }
    for (int i = 0; i < c->n_storages; i++)
        memcpy(c->storage[i].initial, c->storage[i].bytes, c->storage[i].n_bytes);
}

void case_instance_free(case_instance *c)
{
    case_lines_free(c);
    for (int i = 0; i < c->n_bindings; i++) {
        if (c->binding[i].is_view)
            qn_view_release(&c->binding[i].view);
        free(c->binding[i].expected);
    }
    for (int i = 0; i < c->n_storages; i++) {
        free(c->storage[i].bytes);
        free(c->storage[i].initial);
        free(c->storage[i].reference);
    }
}

uint64_t case_element(int dtype, const void *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, (size_t)qn_dtype_bytes(dtype));
    return bits;
}

bool case_same_element(int dtype, uint64_t a, uint64_t b)
{
    if (dtype == QN_C64)
        return case_same_element(QN_F32, (uint32_t)a, (uint32_t)b) &&
               case_same_element(QN_F32, a >> 32, b >> 32);
    uint64_t inf = dtype_infinity(dtype), size = UINT64_MAX >> (65 - 8 * qn_dtype_bytes(dtype));
    return a == b || (inf && (a & size) > inf && (b & size) > inf);
}

/* ---------------------------------------------------------------- files */

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("Bail out! cannot read %s\n", path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    char *text = reader_memory(n + 1);
    if (fread(text, 1, n, f) != n)
        text[0] = 0;
    fclose(f);
    return text;
}

/** `case NAME [for VARIABLE = VALUES]` */
static void read_case_line(reader *r, case_set *set)
{
    *set = (case_set){.n_values = 1};
    size_t n = 0;
    reader_skip_space(r);
    while (*r->at && strncmp(r->at, " for ", 5) != 0 && n + 1 < sizeof set->name)
        set->name[n++] = *r->at++;
    if (!reader_take(r, "for"))
        return;
    reader_word(r, "=", set->variable, sizeof set->variable);
    reader_expect(r, "=");
    for (set->n_values = 0; !reader_at_end(r);) {
        if (set->n_values == MAX_CASE_VALUES)
            reader_stop(r, "too many values");
        set->value[set->n_values++] = reader_integer(r);
    }
}

static void add_line(reader *r, case_set *set, const char *line)
{
    bool is_continued = isspace((unsigned char)line[0]) && set->n_lines > 0;
    if (!is_continued && set->n_lines == MAX_CASE_LINES)
        reader_stop(r, "too many lines");
    const char *old = is_continued ? set->line[set->n_lines - 1] : "";
    size_t n = strlen(old) + strlen(line) + 2;
    char *joined = reader_memory(n);
    snprintf(joined, n, "%s %s", old, line);
    if (is_continued)
        free(set->line[--set->n_lines]);
    else
        set->line_number[set->n_lines] = r->line;
    set->line[set->n_lines++] = joined;
}

/** A line of the file outside the kernel text. */
static void read_line(reader *r, case_file *out, char *line)
{
    r->at = line;
    if (reader_at_end(r))
        return;
    if (reader_take(r, "case")) {
        if (out->n_sets == MAX_CASES)
            reader_stop(r, "too many cases");
        read_case_line(r, &out->set[out->n_sets++]);
        return;
    }
    if (out->n_sets == 0)
        out->set[out->n_sets++] = (case_set){.n_values = 1};
    add_line(r, &out->set[out->n_sets - 1], line);
}

void case_file_read(const char *path, case_file *out)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    char *text = read_all(path), *next;
    size_t kernel_bytes = 0;
    bool in_kernel = false;
    out->text = reader_memory(strlen(text) + 2);
    reader r = {.file = out, .variable = ""};
    for (char *line = text; line; line = next) {
        r.line++;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        in_kernel = in_kernel || strncmp(line, "kernel ", 7) == 0 ||
                    strncmp(line, "function ", 9) == 0;
        if (in_kernel) {
            kernel_bytes += (size_t)sprintf(out->text + kernel_bytes, "%s\n", line);
            in_kernel = strcmp(line, "}") != 0;
        } else if (line[0] != '#') {
            read_line(&r, out, line);
        }
    }
    if (kernel_bytes == 0 || out->n_sets == 0)
        reader_stop(&r, "no kernel or no case");
    free(text);
}

void case_file_free(case_file *f)
{
    for (int i = 0; i < f->n_sets; i++)
        for (int j = 0; j < f->set[i].n_lines; j++)
            free(f->set[i].line[j]);
    free(f->text);
}
