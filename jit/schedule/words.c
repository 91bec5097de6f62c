/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c: tokens of schedule texts. A text is bytes with a length, and may be hostile.
 */
#include "jit/schedule/transform.h"

#include <string.h>

void qn__words_begin(qn_words *w, const char *text, size_t n)
{
    *w = (qn_words){.at = text, .end = text + n, .line = 1};
    qn__words_next(w);
}

static bool is_symbol(char c)
{
    return c == '{' || c == '}' || c == ';';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void skip_space(qn_words *w)
{
    for (; w->at < w->end; w->at++) {
        if (*w->at == '#')
            while (w->at < w->end && *w->at != '\n')
                w->at++;
        if (w->at == w->end || !is_space(*w->at))
            return;
        w->line += *w->at == '\n';
    }
}

void qn__words_next(qn_words *w)
{
    size_t n = 0;
    skip_space(w);
    if (w->at < w->end && is_symbol(*w->at))
        w->word[n++] = *w->at++;
    else
        for (; w->at < w->end && !is_space(*w->at) && !is_symbol(*w->at) && *w->at != '#';
             w->at++) {
            w->is_bad |= n + 1 == QN_MOST_WORD || *w->at < ' ' || *w->at > '~';
            if (!w->is_bad)
                w->word[n++] = *w->at;
        }
    w->word[w->is_bad ? 0 : n] = 0;
}

bool qn__words_take(qn_words *w, const char *word)
{
    if (strcmp(w->word, word) != 0)
        return false;
    qn__words_next(w);
    return true;
}

int qn__words_choose(qn_words *w, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (qn__words_take(w, names[i]))
            return i;
    return -1;
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

bool qn__words_number(qn_words *w, int64_t *n)
{
    if (!read_number(w->word, n))
        return false;
    qn__words_next(w);
    return true;
}

bool qn__words_inst(qn_words *w, uint32_t *inst)
{
    int64_t n;
    if (w->word[0] != '%' || w->word[1] == '-' || !read_number(w->word + 1, &n) || n > UINT32_MAX)
        return false;
    *inst = (uint32_t)n;
    qn__words_next(w);
    return true;
}

bool qn__words_axis(qn_words *w, const qn_schedule *s, qn_axis *a)
{
    *a = strlen(w->word) < QN_AXIS_NAME_BYTES ? qn__axis_find(s, w->word) : (qn_axis){0};
    if (!a->id)
        return false;
    qn__words_next(w);
    return true;
}

bool qn__words_bound(qn_words *w, const qn_schedule *s, qn_bound *b)
{
    char name[QN_MOST_WORD];
    size_t n = strcspn(w->word, "+-");
    memcpy(name, w->word, n);
    name[n] = 0;
    *b = (qn_bound){.from = QN_FROM_BEGIN};
    if (w->word[n] && !read_number(w->word + n, &b->offset))
        return false;
    if (strcmp(name, "begin") != 0) {
        b->from = QN_FROM_END;
        if (strcmp(name, "end") != 0) {
            b->from = QN_FROM_AXIS;
            b->axis = n && n < QN_AXIS_NAME_BYTES ? qn__axis_find(s, name) : (qn_axis){0};
            if (!b->axis.id)
                return false;
        }
    }
    qn__words_next(w);
    return true;
}

/* ---------------------------------------------------------------- steps */

static bool read_operand(qn_words *w, const qn_schedule *s, qn_step *step, char kind, int n_bounds)
{
    switch (kind) {
    case 'a':
        return step->n_axes < QN_MOST_STEP_AXES &&
               qn__words_axis(w, s, &step->axis[step->n_axes]) && ++step->n_axes;
    case 'n':
        return step->n_numbers < 4 && qn__words_number(w, &step->number[step->n_numbers]) &&
               ++step->n_numbers;
    case 'b':
        return n_bounds < 3 && qn__words_bound(w, s, &step->bound[n_bounds]);
    default:
        return qn__words_inst(w, &step->inst);
    }
}

static bool read_option(qn_words *w, const qn_transform_info *t, qn_step *step)
{
    size_t n = t->option ? strlen(t->option) : 0;
    if (!t->options)
        return true;
    if (strncmp(w->word, t->option, n) != 0 || w->word[n] != '=')
        return false;
    for (int i = 0; i < t->n_options; i++)
        if (strcmp(w->word + n + 1, t->options[i]) == 0) {
            step->option = (uint8_t)i;
            qn__words_next(w);
            return true;
        }
    return false;
}

/** Reads operands up to the `;`, or to the option. Of bounds, which are counted in n_numbers, there
 * are no numbers beside. */
bool qn__words_step(qn_words *w, const qn_schedule *s, qn_step *step)
{
    int which = -1, n_bounds = 0;
    for (int n = 0; n < qn__n_transforms && which < 0; n++)
        which = qn__words_take(w, qn__transforms[n].name) ? n : -1;
    *step = (qn_step){.which = (uint8_t)which};
    if (which < 0)
        return false;
    const qn_transform_info *t = &qn__transforms[which];
    for (const char *kind = t->operands; *kind; kind += kind[1] == '*' ? 2 : 1) {
        bool may_repeat = kind[1] == '*';
        do {
            if (may_repeat && (strcmp(w->word, ";") == 0 || (t->options && strchr(w->word, '='))))
                break;
            if (!read_operand(w, s, step, *kind, n_bounds))
                return false;
            n_bounds += *kind == 'b';
        } while (may_repeat);
    }
    if (n_bounds)
        step->n_numbers = (uint8_t)n_bounds;
    return read_option(w, t, step) && qn__words_take(w, ";");
}

void qn__step_print(const qn_schedule *s, const qn_step *step, qn_text *out)
{
    const qn_transform_info *t = &qn__transforms[step->which < qn__n_transforms ? step->which : 0];
    char name[QN_AXIS_NAME_BYTES];
    int axes = 0, numbers = 0;
    qn__text_add(out, "%s", t->name);
    for (const char *kind = t->operands; *kind; kind += kind[1] == '*' ? 2 : 1)
        do {
            if (*kind == 'a' && axes < step->n_axes) {
                qn__axis_name(s, step->axis[axes++], name);
                qn__text_add(out, " %s", name);
            } else if (*kind == 'n' && numbers < step->n_numbers) {
                qn__text_add(out, " %lld", (long long)step->number[numbers++]);
            } else if (*kind == 'b' && numbers < step->n_numbers) {
                qn__bound_print(s, &step->bound[numbers++], out);
            } else if (*kind == 'i') {
                qn__text_add(out, " %%%u", step->inst);
            } else {
                break;
            }
        } while (kind[1] == '*');
    if (t->options)
        qn__text_add(out, " %s=%s", t->option,
                     t->options[step->option < t->n_options ? step->option : 0]);
}
