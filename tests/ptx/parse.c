/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c: PTX text -> instructions. Registers get numbers by order of first use; a name that is no
 * register, number or label of the kernel is an error.
 */
#include "tests/ptx/inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    ptx_module *m;
    ptx_kernel *k;
    const char *at;
    char *error;
    size_t error_bytes;
    bool failed;
    char (*registers)[16];
    int n_registers, register_capacity;
    struct {
        char name[32];
        int at;
    } *labels;
    int n_labels;
} reader;

static void fail(reader *r, const char *what, const char *token)
{
    if (!r->failed)
        snprintf(r->error, r->error_bytes, "ptx_parse: %s \"%.80s\"", what, token);
    r->failed = true;
}

static void *grow(void *p, int n, int *capacity, size_t bytes)
{
    if (n < *capacity)
        return p;
    *capacity = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(p, (size_t)*capacity * bytes);
    if (!grown)
        abort(); /* a test program */
    return grown;
}

/** Skips blanks and comments. */
static void skip(reader *r)
{
    for (;;) {
        while (isspace((unsigned char)*r->at))
            r->at++;
        if (r->at[0] == '/' && r->at[1] == '/')
            while (*r->at && *r->at != '\n')
                r->at++;
        else
            return;
    }
}

/** A word up to a blank or one of the marks that end operands. */
static void word(reader *r, char *out, size_t bytes)
{
    size_t n = 0;
    skip(r);
    while (*r->at && !isspace((unsigned char)*r->at) && !strchr(",;()[]{}+", *r->at)) {
        if (n + 1 < bytes)
            out[n++] = *r->at;
        r->at++;
    }
    out[n] = 0;
}

static bool accept(reader *r, char mark)
{
    skip(r);
    if (*r->at != mark)
        return false;
    r->at++;
    return true;
}

static void expect(reader *r, char mark)
{
    char text[16];
    snprintf(text, sizeof text, "%.12s", r->at);
    if (!r->failed && !accept(r, mark))
        fail(r, "unexpected", text);
}

/* ---------------------------------------------------------------- operands */

static int register_number(reader *r, const char *name)
{
    for (int i = 0; i < r->n_registers; i++)
        if (strcmp(r->registers[i], name) == 0)
            return i;
    r->registers = grow(r->registers, r->n_registers, &r->register_capacity, sizeof *r->registers);
    snprintf(r->registers[r->n_registers], sizeof r->registers[0], "%.15s", name);
    return r->n_registers++;
}

static bool is_declared(const reader *r, const char *name)
{
    for (int i = 0; i < r->n_registers; i++)
        if (strcmp(r->registers[i], name) == 0)
            return true;
    return false;
}

static const char *const special[] = {"%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",
                                      "%ntid.z",  "%ctaid.x", "%nctaid.x", "%laneid", "%ctaid.y"};

static bool find_symbol(reader *r, const char *name, ptx_operand *o)
{
    for (int i = 0; i < r->m->n_symbols; i++)
        if (strcmp(r->m->symbol[i].name, name) == 0) {
            o->kind = OPERAND_SYMBOL;
            o->number = i;
            return true;
        }
    return false;
}

static int label_number(reader *r, const char *name)
{
    for (int i = 0; i < r->n_labels; i++)
        if (strcmp(r->labels[i].name, name) == 0)
            return i;
    r->labels = realloc(r->labels, (size_t)(r->n_labels + 1) * sizeof *r->labels);
    if (!r->labels)
        abort();
    snprintf(r->labels[r->n_labels].name, sizeof r->labels[0].name, "%.31s", name);
    r->labels[r->n_labels].at = -1;
    return r->n_labels++;
}

static void named_operand(reader *r, const char *name, ptx_operand *o)
{
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strcmp(name, special[i]) == 0) {
            *o = (ptx_operand){.kind = OPERAND_SPECIAL, .number = (int)i};
            return;
        }
    if (name[0] == '%') {
        *o = (ptx_operand){.kind = OPERAND_REGISTER, .number = register_number(r, name)};
    } else if (strncmp(name, "0f", 2) == 0 || strncmp(name, "0d", 2) == 0) {
        *o = (ptx_operand){.kind = OPERAND_NUMBER, .value = strtoull(name + 2, NULL, 16)};
    } else if (isdigit((unsigned char)name[0]) || name[0] == '-') {
        uint64_t value = name[0] == '-' ? 0 - strtoull(name + 1, NULL, 0) : strtoull(name, NULL, 0);
        *o = (ptx_operand){.kind = OPERAND_NUMBER, .value = value};
    } else if (name[0] == '$') {
        *o = (ptx_operand){.kind = OPERAND_LABEL, .number = label_number(r, name)};
    } else if (is_declared(r, name)) {
        *o = (ptx_operand){.kind = OPERAND_REGISTER, .number = register_number(r, name)};
    } else if (!find_symbol(r, name, o)) {
        fail(r, "unknown name", name);
    }
}

static void operand(reader *r, ptx_inst *i)
{
    char name[64];
    ptx_operand *o = &i->operand[i->n++];
    bool is_address = accept(r, '[');
    if (i->n >= MOST_OPERANDS) {
        fail(r, "too many operands", r->at);
        return;
    }
    if (!is_address && accept(r, '{')) {
        int first = i->n - 1;
        do {
            word(r, name, sizeof name);
            named_operand(r, name, &i->operand[i->n - 1]);
        } while (!r->failed && accept(r, ',') && ++i->n < MOST_OPERANDS);
        i->group[first] = i->n - first;
        expect(r, '}');
        return;
    }
    word(r, name, sizeof name);
    char *second = strchr(name, '|'); /* shfl's predicate */
    if (second)
        *second = 0;
    named_operand(r, name, o);
    if (second)
        named_operand(r, second + 1, &i->second);
    if (is_address) {
        if (accept(r, '+')) {
            word(r, name, sizeof name);
            o->offset = strtoll(name, NULL, 0);
        }
        o->is_address = true;
        expect(r, ']');
    }
}

/* ---------------------------------------------------------------- instructions */

static const char *const bases[] = {
#define X(name) #name,
    PTX_BASES(X)
#undef X
};

static bool parse_type(const char *part, ptx_type *t)
{
    if (strcmp(part, "pred") == 0) {
        *t = (ptx_type){'p', 1};
        return true;
    }
    if (!strchr("usbf", part[0]) || !isdigit((unsigned char)part[1]))
        return false;
    *t = (ptx_type){part[0], (uint8_t)atoi(part + 1)};
    return true;
}

static const char *const words[] = {
#define X(name) #name,
    PTX_WORDS(X)
#undef X
};

/** "ld.global.nc.f32" -> base, types and the other words as bits. */
static void opcode(reader *r, char *text, ptx_inst *i)
{
    char *part = strtok(text, ".");
    i->base = -1;
    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++)
        if (part && strcmp(part, bases[b]) == 0)
            i->base = (int)b;
    if (i->base < 0)
        fail(r, "unknown instruction", part ? part : "");
    while (!r->failed && (part = strtok(NULL, ".")) != NULL) {
        ptx_type t;
        bool is_word = false;
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
            if (strcmp(part, words[w]) == 0) {
                i->words |= UINT64_C(1) << w;
                is_word = true;
            }
        if (is_word)
            continue;
        if (!parse_type(part, &t) || i->n_types == 2)
            fail(r, "unknown part of an instruction", part);
        else
            i->type[i->n_types++] = t;
    }
}

static ptx_inst *new_inst(reader *r)
{
    ptx_kernel *k = r->k;
    k->inst = grow(k->inst, k->n_insts, &k->inst_capacity, sizeof *k->inst);
    memset(&k->inst[k->n_insts], 0, sizeof *k->inst);
    k->inst[k->n_insts].predicate = -1;
    return &k->inst[k->n_insts++];
}

static void instruction(reader *r, char *first)
{
    ptx_inst *i = new_inst(r);
    char name[64];
    if (first[0] == '@') {
        i->is_negated = first[1] == '!';
        i->predicate = register_number(r, first + 1 + i->is_negated);
        word(r, name, sizeof name);
        first = name;
    }
    snprintf(i->text, sizeof i->text, "%.31s", first);
    opcode(r, first, i);
    skip(r);
    while (!r->failed && *r->at != ';') {
        operand(r, i);
        accept(r, ',');
        skip(r);
    }
    expect(r, ';');
}

/** ["= {1, 2, ...}"] of bytes behind a symbol of constant memory; those left out are 0. */
static void constants(reader *r, int offset, int bytes)
{
    ptx_module *m = r->m;
    size_t now = ((size_t)m->const_bytes + 63) / 64 * 64,
           wanted = ((size_t)(offset + bytes) + 63) / 64 * 64;
    uint8_t *memory = aligned_alloc(64, wanted);
    if (!memory)
        abort();
    memset(memory, 0, wanted);
    if (now)
        memcpy(memory, m->constants, (size_t)m->const_bytes);
    free(m->constants);
    m->constants = memory;
    if (!accept(r, '='))
        return;
    expect(r, '{');
    for (int i = 0; !r->failed && !accept(r, '}'); i++) {
        char text[64];
        word(r, text, sizeof text);
        if (i >= bytes)
            fail(r, "too many constants", text);
        else
            memory[offset + i] = (uint8_t)atoi(text);
        accept(r, ',');
    }
}

/** ".local .align 64 .b8 name[512];" and the same with .shared, and .const and .global, which have
 * values. */
static void symbol(reader *r, int space)
{
    ptx_module *m = r->m;
    char text[64];
    int *total = space == SPACE_LOCAL   ? &r->k->local_bytes
                 : space == SPACE_CONST ? &m->const_bytes
                                        : &m->shared_bytes;
    int align = 1, bytes = 1;
    m->symbol = grow(m->symbol, m->n_symbols, &m->symbol_capacity, sizeof *m->symbol);
    ptx_symbol *s = &m->symbol[m->n_symbols++];
    word(r, text, sizeof text);
    if (strcmp(text, ".align") == 0) {
        word(r, text, sizeof text);
        align = atoi(text);
        word(r, text, sizeof text);
    }
    bytes = atoi(text + 2) / 8;
    word(r, s->name, sizeof s->name);
    s->space = space;
    if (accept(r, '[')) {
        word(r, text, sizeof text);
        bytes *= atoi(text); /* none: dynamic */
        expect(r, ']');
    }
    s->offset = (*total + align - 1) / align * align;
    if (space == SPACE_CONST)
        constants(r, s->offset, bytes);
    expect(r, ';');
    *total = s->offset + bytes;
}

/** ".reg .b32 %r<7>;", or ".reg .b32 tmp;" in a block, whose registers may share a name with those
 * of others. */
static void declaration(reader *r)
{
    char text[64];
    word(r, text, sizeof text);
    word(r, text, sizeof text);
    if (text[0] != '%')
        register_number(r, text);
    while (*r->at && *r->at != ';')
        r->at++;
    expect(r, ';');
}

static void body(reader *r)
{
    char text[64];
    int depth = 1;
    expect(r, '{');
    while (!r->failed && depth > 0) {
        if (accept(r, '{') || accept(r, '}')) {
            depth += r->at[-1] == '{' ? 1 : -1;
            continue;
        }
        word(r, text, sizeof text);
        size_t n = strlen(text);
        if (strcmp(text, ".reg") == 0) {
            declaration(r);
        } else if (strcmp(text, ".local") == 0) {
            symbol(r, SPACE_LOCAL);
        } else if (strcmp(text, ".shared") == 0) {
            symbol(r, SPACE_SHARED);
        } else if (n > 1 && text[n - 1] == ':') {
            text[n - 1] = 0;
            int label = label_number(r, text); /* may move the labels */
            r->labels[label].at = r->k->n_insts;
        } else if (n == 0) {
            fail(r, "unexpected", r->at);
        } else {
            instruction(r, text);
        }
    }
}

/** Labels become places. */
static void resolve(reader *r)
{
    for (int i = 0; i < r->k->n_insts; i++)
        for (int n = 0; n < r->k->inst[i].n; n++) {
            ptx_operand *o = &r->k->inst[i].operand[n];
            if (o->kind == OPERAND_LABEL) {
                o->value = (uint64_t)r->labels[o->number].at;
                if (r->labels[o->number].at < 0)
                    fail(r, "label is missing", r->labels[o->number].name);
            }
        }
    r->k->n_registers = r->n_registers;
}

/** ".entry name(.param .align 8 .b8 name_param_0[40]) .reqntid 256, 1, 1 {...}" */
static void entry(reader *r)
{
    ptx_module *m = r->m;
    char text[64];
    if (m->n_kernels == MOST_KERNELS) {
        fail(r, "too many kernels", "");
        return;
    }
    r->k = &m->kernel[m->n_kernels++];
    r->n_registers = r->n_labels = 0;
    word(r, r->k->name, sizeof r->k->name);
    expect(r, '(');
    while (!r->failed && !accept(r, ')')) {
        word(r, text, sizeof text);
        if (text[0] == 0 || strstr(text, "_param_")) {
            m->symbol = grow(m->symbol, m->n_symbols, &m->symbol_capacity, sizeof *m->symbol);
            if (text[0]) {
                ptx_symbol *s = &m->symbol[m->n_symbols++];
                *s = (ptx_symbol){.space = SPACE_PARAM};
                snprintf(s->name, sizeof s->name, "%.47s", text);
            } else if (*r->at && *r->at != ')') {
                r->at++;
            }
        }
    }
    for (skip(r); !r->failed && *r->at && *r->at != '{'; skip(r)) {
        word(r, text, sizeof text);
        bool is_required = strcmp(text, ".reqntid") == 0;
        for (int a = 0; is_required && a < 3; a++) {
            word(r, text, sizeof text);
            r->k->threads[a] = atoi(text);
            accept(r, ',');
        }
        if (text[0] == 0)
            fail(r, "unexpected", r->at);
    }
    body(r);
    resolve(r);
}

ptx_module *ptx_parse(const char *text, char *error, size_t error_bytes)
{
    reader r = {.at = text, .error = error, .error_bytes = error_bytes};
    char token[64];
    r.m = calloc(1, sizeof *r.m);
    if (!r.m)
        return NULL;
    for (skip(&r); !r.failed && *r.at; skip(&r)) {
        word(&r, token, sizeof token);
        if (strcmp(token, ".entry") == 0)
            entry(&r);
        else if (strcmp(token, ".shared") == 0)
            symbol(&r, SPACE_SHARED);
        else if (strcmp(token, ".const") == 0 || strcmp(token, ".global") == 0)
            symbol(&r, SPACE_CONST);
        else if (strcmp(token, ".version") == 0 || strcmp(token, ".target") == 0 ||
                 strcmp(token, ".address_size") == 0)
            word(&r, token, sizeof token);
        else if (strcmp(token, ".visible") != 0 && strcmp(token, ".extern") != 0)
            fail(&r, "unexpected", token[0] ? token : r.at);
    }
    free(r.registers);
    free(r.labels);
    if (!r.failed)
        return r.m;
    ptx_free(r.m);
    return NULL;
}

void ptx_free(ptx_module *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_kernels; i++)
        free(m->kernel[i].inst);
    free(m->symbol);
    free(m->constants);
    free(m);
}
