/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_text.c: the text of a schedule, written and read (docs/schedule-text.md). One function for
 * each item says both: where there is an output, the words of the text are written to it, else they
 * are taken from the input. The input may be hostile: what comes out is well formed as data, that
 * is, every number in it is in its range, and nothing more. Whether it fits a kernel is for
 * verify.c.
 */
#include "jit/schedule/transform.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORD = 96 };

typedef struct codec {
    qn_schedule *s; /* writing changes nothing in it */
    qn_text *out;   /* NULL: the text is read */
    bool is_fresh;  /* nothing stands on the line that is written */
    bool is_alone;  /* a step is written, not a whole text */
    const char *at, *end;
    int line;
    char word[MOST_WORD]; /* the current one of the input, "" at the end */
    bool is_bad;          /* a word was too long, or held a byte that is no printable ASCII */
    qn_error *err;
    qn_status status; /* of the first error; from then on nothing is read */
} codec;

/* ---------------------------------------------------------------- words that are read */

/** Words of their own, which end the word before. */
static const char symbols[] = "{};", white[] = " \n\t\r";

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static void skip_space(codec *c)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '#')
            while (c->at < c->end && *c->at != '\n')
                c->at++;
        if (c->at == c->end || !is_one_of(*c->at, white))
            return;
        c->line += *c->at == '\n';
    }
}

static void next(codec *c)
{
    size_t n = 0;
    skip_space(c);
    if (c->at < c->end && is_one_of(*c->at, symbols))
        c->word[n++] = *c->at++;
    else
        for (; c->at < c->end && !is_one_of(*c->at, white) && !is_one_of(*c->at, symbols) &&
               *c->at != '#';
             c->at++) {
            c->is_bad |= n + 1 == MOST_WORD || *c->at < ' ' || *c->at > '~';
            if (!c->is_bad)
                c->word[n++] = *c->at;
        }
    c->word[c->is_bad ? 0 : n] = 0;
}

/** Notes the first error. */
static void fail(codec *c, qn_status status, const char *what)
{
    if (c->status == QN_OK)
        c->status = qn__fail_line(c->err, status, c->line, "schedule, line %d: %s at \"%.60s\"",
                                  c->line, what, c->is_bad ? "(no word)" : c->word);
}

/** Whether there is room for one more of what is read. */
static bool has_room(codec *c, int n, int most, const char *what)
{
    if (!c->out && n >= most)
        fail(c, QN_ERR_LIMIT, what);
    return c->status == QN_OK;
}

/** Whether the current word is this one; if so, goes on. */
static bool takes(codec *c, const char *word)
{
    bool is_it = c->status == QN_OK && strcmp(c->word, word) == 0;
    if (is_it)
        next(c);
    return is_it;
}

/** Decimal digits with a sign, all of `text`. */
static bool read_number(const char *text, int64_t *n)
{
    bool is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (!*text)
        return false;
    for (*n = 0; *text; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(*n, 10, n) ||
            __builtin_add_overflow(*n, *text - '0', n))
            return false;
    *n = is_negative ? -*n : *n;
    return true;
}

/* ---------------------------------------------------------------- words, both ways */

static void write_word(codec *c, const char *word)
{
    qn__text_add(c->out, "%s%s", c->is_fresh || *word == ';' ? "" : " ", word);
    c->is_fresh = false;
}

/** Begins a line of a text that is written, with a word if that is not "". */
static void begin_line(codec *c, int depth, const char *word)
{
    if (c->out)
        qn__text_add(c->out, "\n%*s%s", 2 * depth, "", word);
    c->is_fresh = !*word;
}

/** Whether a word is there: if it is to be written, or is the current one that is read. */
static bool code_optional(codec *c, const char *word, bool is_there)
{
    if (c->out && is_there)
        write_word(c, word);
    return c->out ? is_there : takes(c, word);
}

static void code_word(codec *c, const char *word)
{
    char what[32] = "expected ";
    strncat(what, word, 16);
    if (!code_optional(c, word, true))
        fail(c, QN_ERR_PARSE, what);
}

/** One of n names. */
static void code_name(codec *c, uint8_t *number, const char *const *names, int n, const char *what)
{
    if (c->out)
        write_word(c, names[*number]);
    for (int i = 0; i < n && !c->out; i++)
        if (takes(c, names[i])) {
            *number = (uint8_t)i;
            return;
        }
    if (!c->out)
        fail(c, QN_ERR_PARSE, what);
}

/** A number from least to most behind a prefix. What is refused reads as the least. */
static void code_number(codec *c, const char *prefix, int64_t *n, int64_t least, int64_t most,
                        const char *what)
{
    char word[32];
    size_t skipped = strlen(prefix);
    if (c->out) {
        snprintf(word, sizeof word, "%s%" PRId64, prefix, *n);
        write_word(c, word);
    } else if (c->status == QN_OK && strncmp(c->word, prefix, skipped) == 0 &&
               read_number(c->word + skipped, n) && *n >= least && *n <= most) {
        next(c);
    } else {
        *n = least;
        fail(c, QN_ERR_PARSE, what);
    }
}

/** "%12" */
static void code_inst(codec *c, uint32_t *inst, const char *what)
{
    int64_t n = *inst;
    code_number(c, "%", &n, 0, UINT32_MAX, what);
    *inst = (uint32_t)n;
}

/** "b3": a buffer that was declared, by its number and `base`. */
static void code_buffer_name(codec *c, uint8_t *index, int base)
{
    int64_t n = *index - base;
    code_number(c, "b", &n, 0, c->s->n_buffers - 1, "expected a buffer that was declared");
    *index = (uint8_t)(n + base);
}

static void code_axis_name(codec *c, qn_axis *a, const char *what)
{
    char name[QN_AXIS_NAME_BYTES];
    if (c->out) {
        qn__axis_name(c->s, *a, name);
        write_word(c, name);
        return;
    }
    bool is_name = c->status == QN_OK && strlen(c->word) < QN_AXIS_NAME_BYTES;
    *a = is_name ? qn__axis_find(c->s, c->word) : (qn_axis){0};
    if (a->id)
        next(c);
    else
        fail(c, QN_ERR_PARSE, what);
}

/** Whether a list that ends before the word `until` has an item number n. */
static bool has_item(const codec *c, int n, int n_written, int most, const char *until)
{
    return c->out ? n < n_written : n < most && c->status == QN_OK && strcmp(c->word, until) != 0;
}

/** Reads "begin+1", "end-1" or "d0+1". */
static bool read_bound(const codec *c, qn_bound *b)
{
    char name[MOST_WORD];
    size_t n = strcspn(c->word, "+-");
    memcpy(name, c->word, n);
    name[n] = 0;
    *b = (qn_bound){.from = strcmp(name, "begin") == 0 ? QN_FROM_BEGIN
                            : strcmp(name, "end") == 0 ? QN_FROM_END
                                                       : QN_FROM_AXIS};
    if (b->from == QN_FROM_AXIS && n && n < QN_AXIS_NAME_BYTES)
        b->axis = qn__axis_find(c->s, name);
    return (b->from != QN_FROM_AXIS || b->axis.id) &&
           (!c->word[n] || read_number(c->word + n, &b->offset));
}

static void code_bound(codec *c, qn_bound *b)
{
    char name[QN_AXIS_NAME_BYTES] = "", word[QN_AXIS_NAME_BYTES + 24];
    if (c->out) {
        if (b->from == QN_FROM_AXIS)
            qn__axis_name(c->s, b->axis, name);
        snprintf(word, sizeof word, b->offset ? "%s%+" PRId64 : "%s",
                 b->from == QN_FROM_BEGIN ? "begin"
                 : b->from == QN_FROM_END ? "end"
                                          : name,
                 b->offset);
        write_word(c, word);
    } else if (c->status == QN_OK && read_bound(c, b)) {
        next(c);
    } else {
        fail(c, QN_ERR_PARSE, "expected a bound");
    }
}

/* ---------------------------------------------------------------- axes and buffers */

/** Whether the current word is the name of a new axis that is no part of another one. */
static bool is_new_root(const codec *c, qn_axis_info *out)
{
    const char *end = c->word[0] ? qn__axis_root(c->word, out) : NULL;
    return end && !*end && !qn__axis_find(c->s, c->word).id;
}

static void code_axis(codec *c, qn_axis own)
{
    qn_axis_info a = {.count = {QN_COUNT_EXACT, INT64_MAX}};
    if (c->out) {
        code_axis_name(c, &own, NULL);
        a = *qn__axis(c->s, own);
    } else if (!is_new_root(c, &a)) {
        fail(c, QN_ERR_PARSE, "no name of a new axis of a dimension, a point or a trip");
    } else {
        a.count = (qn_count){QN_COUNT_EXACT, INT64_MAX};
        next(c);
    }
    if (code_optional(c, "symbolic", a.count.kind == QN_COUNT_SYMBOLIC))
        a.count.kind = QN_COUNT_SYMBOLIC;
    else if (code_optional(c, "data", a.count.kind == QN_COUNT_DATA))
        a.count.kind = QN_COUNT_DATA;
    else
        code_number(c, "", &a.count.most, 0, INT64_MAX, "expected a count, symbolic or data");
    if (has_room(c, c->s->n_axes, QN_MOST_AXES, "too many axes") && !c->out)
        qn__axis_new(c->s, &a);
    code_word(c, ";");
}

static void code_extents(codec *c, qn_cut *cut, int n_written)
{
    int64_t step = 1;
    for (cut->n = 1; has_item(c, cut->n, n_written, QN_MOST_PARTS, "tail"); cut->n++) {
        int64_t *extent = &cut->extent[cut->n];
        code_number(c, "", extent, INT64_MIN, INT64_MAX, "expected tail");
        if (!c->out && c->status == QN_OK &&
            (*extent < 1 || __builtin_mul_overflow(step, *extent, &step)))
            fail(c, QN_ERR_PARSE, "parts of less than one iteration, or of too many,");
    }
    code_word(c, "tail");
    code_name(c, &cut->tail, qn__tail_names, QN_N_TAILS, "expected a tail");
}

/** `written`: the cut, if there is an output. */
static void code_cut(codec *c, const qn_cut *written)
{
    qn_cut cut = written ? *written : (qn_cut){.kind = QN_CUT_DIGITS};
    const int n_written = cut.n;
    qn_axis first;
    code_axis_name(c, &cut.of, "expected an axis");
    if (code_optional(c, "by", cut.kind == QN_CUT_DIGITS)) {
        code_extents(c, &cut, n_written);
    } else if (code_optional(c, "at", true)) {
        cut.kind = QN_CUT_SECTIONS;
        for (cut.n = 1; has_item(c, cut.n, n_written, QN_MOST_PARTS, ";"); cut.n++)
            code_bound(c, &cut.bound[cut.n - 1]);
    } else {
        fail(c, QN_ERR_PARSE, "expected by or at");
    }
    if (!c->out && c->status == QN_OK && !qn__axis_cut(c->s, cut.of, &cut, &first))
        fail(c, QN_ERR_LIMIT, "a cut of no parts, or one too many");
    code_word(c, ";");
}

static void code_buffer(codec *c, int number)
{
    char name[16];
    if (!has_room(c, number, QN_MOST_BUFFERS, "too many buffers"))
        return;
    qn_buffer_info *b = &c->s->buffer[number];
    const int n_written = c->out ? b->n_axes : 0;
    const char *what = "expected a storage, a content and an instruction";
    if (!c->out)
        *b = (qn_buffer_info){0};
    snprintf(name, sizeof name, "b%d", number);
    code_word(c, name);
    code_name(c, &b->storage, qn__storage_names, QN_N_STORAGES, what);
    code_name(c, &b->content, qn__content_names, QN_N_CONTENTS, what);
    code_inst(c, &b->inst, what);
    code_word(c, "over");
    for (b->n_axes = 0; has_item(c, b->n_axes, n_written, QN_MOST_BUFFER_AXES, "bytes");
         b->n_axes++)
        code_axis_name(c, &b->axis[b->n_axes], "expected bytes");
    code_word(c, "bytes");
    code_number(c, "", &b->bytes, INT64_MIN, INT64_MAX, "expected a number of bytes");
    c->s->n_buffers += c->out ? 0 : 1;
    code_word(c, ";");
}

/* ---------------------------------------------------------------- nodes */

static const char *const node_names[] = {"loop", "do", "place", "fill", "flush"};
enum { N_NODE_NAMES = 5 }; /* in the order of QN_NODE_LOOP and on */

static void code_record(codec *c, qn_record_info *r)
{
    int64_t n = r->index, ahead = r->ahead;
    r->is_tail = code_optional(c, "tail", r->is_tail);
    code_inst(c, &r->inst, "expected an access");
    code_name(c, &r->method, qn__method_names, QN_N_METHODS, "expected a way to access");
    if (r->method == QN_METHOD_STRIDED || r->method == QN_METHOD_GROUP)
        code_number(c, "", &r->stride, INT64_MIN, INT64_MAX, "expected a stride");
    if (r->method == QN_METHOD_THROUGH) {
        code_buffer_name(c, &r->index, 1);
    } else if (code_optional(c, "of", r->index)) {
        code_number(c, "", &n, 1, UINT8_MAX, "expected a number of a group, or of registers");
        r->index = (uint8_t)n;
    }
    code_name(c, &r->check, qn__check_names, QN_N_CHECKS, "expected a check");
    r->is_single = code_optional(c, "single", r->is_single);
    r->is_flat = code_optional(c, "flat", r->is_flat);
    r->streams = code_optional(c, "streams", r->streams);
    r->is_plain = code_optional(c, "plain", r->is_plain);
    if (code_optional(c, "ahead", r->ahead)) {
        code_number(c, "", &ahead, 1, INT32_MAX, "expected a distance and an axis");
        r->ahead = (int32_t)ahead;
        code_axis_name(c, &r->along, "expected a distance and an axis");
    }
    code_word(c, ";");
}

/** The records of the statement `at`, up to a `}`. */
static void code_records(codec *c, qn_node at, int depth)
{
    for (int n = 0; n < c->s->n_records && c->out; n++)
        if (c->s->record[n].at.id == at.id) {
            begin_line(c, depth, "");
            code_record(c, &c->s->record[n]);
        }
    while (!c->out && c->status == QN_OK && strcmp(c->word, "}") != 0) {
        if (!has_room(c, c->s->n_records, QN_MOST_RECORDS, "too many access records"))
            return;
        qn_record_info *r = &c->s->record[c->s->n_records++];
        *r = (qn_record_info){.at = at};
        code_record(c, r);
    }
}

static void code_place(codec *c, qn_node_info *x)
{
    if (!has_room(c, c->s->n_reductions, QN_MOST_REDUCTIONS, "too many reductions"))
        return;
    if (!c->out) {
        x->index = (uint8_t)c->s->n_reductions;
        c->s->reduction[c->s->n_reductions++] = (qn_reduced){0};
    }
    qn_reduced *r = &c->s->reduction[x->index];
    const int n_written = r->n;
    for (r->n = 0; r->n == 0 || has_item(c, r->n, n_written, QN_MOST_TUPLE, "order"); r->n++)
        code_inst(c, &r->inst[r->n], r->n ? "expected order" : "expected a reduce");
    code_word(c, "order");
    code_name(c, &r->order, qn__points_names, QN_N_POINTS, "expected an order rule");
    if (code_optional(c, "in", r->buffer))
        code_buffer_name(c, &r->buffer, 1);
}

static bool has_records(const qn_schedule *s, qn_node at)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].at.id == at.id)
            return true;
    return false;
}

static void code_nodes(codec *c, qn_node parent, int depth);

/** A node behind its keyword. */
static void code_node(codec *c, qn_node at, int depth)
{
    qn_node_info *x = &c->s->node[at.id];
    const char *what = "expected two instructions";
    switch (x->kind) {
    case QN_NODE_LOOP:
        code_axis_name(c, &x->axis, "expected an axis");
        code_name(c, &x->role, qn__role_names, QN_N_ROLES, "expected a role");
        break;
    case QN_NODE_DO:
        code_inst(c, &x->first, what);
        code_inst(c, &x->end, what);
        break;
    case QN_NODE_PLACE:
        code_place(c, x);
        break;
    default:
        code_buffer_name(c, &x->index, 0);
    }
    bool is_do = x->kind == QN_NODE_DO;
    if (code_optional(c, ";", is_do ? !has_records(c->s, at) : !x->child.id))
        return;
    code_word(c, "{");
    if (is_do)
        code_records(c, at, depth + 1);
    else
        code_nodes(c, at, depth + 1);
    begin_line(c, depth, "");
    code_word(c, "}");
}

/** A node of the input. */
static void read_node(codec *c, qn_node parent, int depth, const char *what)
{
    qn_node_info info = {.line = c->line};
    code_name(c, &info.kind, node_names, N_NODE_NAMES, what);
    info.kind = (uint8_t)(info.kind + QN_NODE_LOOP);
    qn_node at = c->status == QN_OK ? qn__node_new(c->s, &info) : (qn_node){0};
    if (!at.id || depth > QN_MOST_DEPTH) {
        fail(c, QN_ERR_LIMIT, "too many nodes, or too deep ones,");
        return;
    }
    qn__node_append(c->s, parent, at);
    code_node(c, at, depth);
}

/** The nodes inside of another one; those that are written may be of the root. */
static void code_nodes(codec *c, qn_node parent, int depth)
{
    int left = QN_MOST_NODES;
    qn_node at = parent.id ? c->s->node[parent.id].child : c->s->root;
    for (; c->out && qn__node(c->s, at)->kind && depth <= QN_MOST_DEPTH && left > 0; left--) {
        begin_line(c, depth, node_names[qn__node(c->s, at)->kind - QN_NODE_LOOP]);
        code_node(c, at, depth);
        at = qn__node(c->s, at)->next;
    }
    while (!c->out && c->status == QN_OK && strcmp(c->word, "}") != 0)
        read_node(c, parent, depth, "expected a node");
}

/* ---------------------------------------------------------------- steps */

enum { MOST_NUMBERS = 4, MOST_BOUNDS = 3 }; /* of a step */
static const char no_step[] = "no step of a transformation";

/** Operand number n of its kind: `a`, `n`, `b` or `i`. */
static void code_operand(codec *c, qn_step *step, char kind, int n)
{
    if (kind == 'a' && n < QN_MOST_STEP_AXES)
        code_axis_name(c, &step->axis[n], no_step);
    else if (kind == 'n' && n < MOST_NUMBERS)
        code_number(c, "", &step->number[n], INT64_MIN, INT64_MAX, no_step);
    else if (kind == 'b' && n < MOST_BOUNDS)
        code_bound(c, &step->bound[n]);
    else if (kind == 'i')
        code_inst(c, &step->inst, no_step);
    else
        fail(c, QN_ERR_PARSE, no_step);
}

/** "tail=mask" */
static void code_option(codec *c, const qn_transform_info *t, qn_step *step)
{
    char word[MOST_WORD];
    bool is_found = !t->options;
    for (int i = 0; i < t->n_options && !is_found; i++) {
        snprintf(word, sizeof word, "%s=%s", t->option, t->options[i]);
        is_found = code_optional(c, word, step->option == i);
        step->option = is_found ? (uint8_t)i : step->option;
    }
    if (!is_found)
        fail(c, QN_ERR_PARSE, no_step);
}

/** A step and its `;`, but where one alone is written. Of bounds, which are counted in n_numbers,
 * there are no numbers beside. */
static void code_step(codec *c, qn_step *step)
{
    int which = c->out ? step->which : 0, done[2] = {0}; /* axes; numbers or bounds */
    while (!c->out && which < qn__n_transforms && !takes(c, qn__transforms[which].name))
        which++;
    if (which >= qn__n_transforms) {
        fail(c, QN_ERR_PARSE, no_step);
        return;
    }
    const qn_transform_info *t = &qn__transforms[which];
    const int n_written[2] = {step->n_axes, step->n_numbers};
    if (c->out)
        write_word(c, t->name);
    else
        *step = (qn_step){.which = (uint8_t)which};
    for (const char *kind = t->operands; *kind && c->status == QN_OK; kind++) {
        int list = *kind != 'a', *n = &done[list];
        bool may_repeat = kind[1] == '*';
        while (!may_repeat || (has_item(c, *n, n_written[list], INT32_MAX, ";") &&
                               (c->out || !t->options || !strchr(c->word, '=')))) {
            code_operand(c, step, *kind, *n);
            *n += *kind != 'i';
            if (!may_repeat)
                break;
        }
        kind += may_repeat;
    }
    if (!c->out) {
        step->n_axes = (uint8_t)done[0];
        step->n_numbers = (uint8_t)done[1];
    }
    code_option(c, t, step);
    if (!c->is_alone)
        code_word(c, ";");
}

/* ---------------------------------------------------------------- all of it */

static codec reader_of(qn_schedule *s, const char *text, size_t n, qn_error *err)
{
    codec c = {.s = s, .at = text, .end = text + n, .line = 1, .err = err};
    next(&c);
    return c;
}

static void code_straight(codec *c)
{
    int64_t n = c->s->straight;
    code_number(c, "", &n, 0, QN_MOST_STRAIGHT, "expected a number of additions without a loop");
    c->s->straight = (int32_t)n;
    code_word(c, ";");
}

static void read_item(codec *c)
{
    if (takes(c, "axis"))
        code_axis(c, (qn_axis){0});
    else if (takes(c, "cut"))
        code_cut(c, NULL);
    else if (takes(c, "buffer"))
        code_buffer(c, c->s->n_buffers);
    else if (takes(c, "straight"))
        code_straight(c);
    else if (takes(c, "applied") && has_room(c, c->s->n_steps, QN_MOST_STEPS, "too many steps"))
        code_step(c, &c->s->step[c->s->n_steps++]);
    else if (c->status == QN_OK)
        read_node(c, (qn_node){0}, 1, "expected an axis, a buffer, a node or a step");
}

qn_status qn__schedule_parse(const char *text, size_t n, qn_schedule *out, qn_error *err)
{
    memset(out, 0, offsetof(qn_schedule, cut));
    memset(&out->node[0], 0, sizeof out->node[0]);
    out->straight = -1;
    codec c = reader_of(out, text, n, err);
    code_word(&c, "schedule");
    code_word(&c, "{");
    while (c.status == QN_OK && !takes(&c, "}"))
        read_item(&c);
    if (c.word[0] || c.is_bad)
        fail(&c, QN_ERR_PARSE, "text behind the schedule");
    return c.status;
}

qn_status qn__transform_text(const qn_analysis *x, qn_schedule *s, const char *text, size_t n,
                             qn_error *err)
{
    codec c = reader_of(s, text, n, err);
    while (c.status == QN_OK && (c.word[0] || c.is_bad)) {
        qn_step step = {0};
        code_step(&c, &step);
        if (c.status == QN_OK)
            c.status = qn__transform(x, s, &step, err);
    }
    return c.status;
}

void qn__step_print(const qn_schedule *s, const qn_step *step, qn_text *out)
{
    codec c = {.s = (qn_schedule *)(uintptr_t)s, .out = out, .is_fresh = true, .is_alone = true};
    qn_step copy = *step;
    code_step(&c, &copy);
}

/** Appends axes and cuts, in the order of their numbers. */
static void write_axes(codec *c)
{
    for (uint16_t n = 1; n <= c->s->n_axes; n++) {
        const qn_axis_info *a = &c->s->axis[n];
        if (a->kind == QN_AXIS_PART && a->number > 0)
            continue;
        begin_line(c, 1, a->kind == QN_AXIS_PART ? "cut" : "axis");
        if (a->kind == QN_AXIS_PART)
            code_cut(c, &c->s->cut[a->cut]);
        else
            code_axis(c, (qn_axis){n});
    }
}

void qn__schedule_print(const qn_schedule *s, qn_text *out)
{
    codec c = {.s = (qn_schedule *)(uintptr_t)s, .out = out, .is_fresh = true};
    code_word(&c, "schedule");
    code_word(&c, "{");
    write_axes(&c);
    for (int n = 0; n < s->n_buffers; n++) {
        begin_line(&c, 1, "buffer");
        code_buffer(&c, n);
    }
    if (s->straight >= 0) {
        begin_line(&c, 1, "straight");
        code_straight(&c);
    }
    code_nodes(&c, (qn_node){0}, 1);
    for (int n = 0; n < s->n_steps; n++) {
        begin_line(&c, 1, "applied");
        code_step(&c, &c.s->step[n]);
    }
    qn__text_add(out, "\n}\n");
}
