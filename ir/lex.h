/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lex.h: tokens, keywords and literals of the kernel text (docs/kernel-text.md), private to the
 * files of ir/ that read and print numbers. Independent of the C library's number conversions, so
 * of the host's locale. A text is bytes with a length: zero bytes are ordinary wrong bytes.
 */
#ifndef QN_IR_LEX_H
#define QN_IR_LEX_H

#include "ir/ir.h"

typedef enum qn_token_kind {
    QN_TOKEN_END,    /* end of the text */
    QN_TOKEN_WORD,   /* identifier or keyword */
    QN_TOKEN_VALUE,  /* %name; `text` is without the % */
    QN_TOKEN_NUMBER, /* unsigned integer or float, see qn__read_integer and qn__read_float */
    QN_TOKEN_STRING, /* "..."; `text` is without the quotes, escapes were checked */
    QN_TOKEN_SYMBOL, /* one character, or two or three of an operator */
    QN_TOKEN_BAD     /* `problem` says what is wrong */
} qn_token_kind;

typedef struct qn_token {
    qn_token_kind kind;
    int line, column;    /* counted from 1; columns count bytes */
    const char *text;    /* borrowed from the text */
    size_t n;            /* bytes of it */
    const char *problem; /* static */
} qn_token;

typedef struct qn_lexer {
    const char *at, *end, *line_start;
    int line;
} qn_lexer;

void qn__lex_start(qn_lexer *x, const char *text, size_t n);
qn_token qn__lex(qn_lexer *x);

/** Appends the decoded bytes of a string token. */
void qn__lex_decode(const qn_token *t, qn_text *out);

/** A keyword and the bits or number it stands for. */
typedef struct qn_word {
    const char *text;
    uint32_t number;
} qn_word;
/** Kernel flags, view traits, orders of reductions, as printed; each list ends with {NULL, 0}. */
extern const qn_word qn__flag_words[], qn__trait_words[], qn__order_words[];

/** The value of a number token as `dtype`: canonical bits. Returns NULL, or what is wrong. */
const char *qn__read_integer(const qn_token *t, bool is_negative, int dtype, uint64_t *bits);
/** Hex floats (0x1.8p+1) and decimals, rounded once, to nearest even. */
const char *qn__read_float(const qn_token *t, bool is_negative, int dtype, uint64_t *bits);
/** The payload of nan(0x...): bits of the value as stored. */
const char *qn__read_nan(const qn_token *t, int dtype, uint64_t *bits);

#endif
