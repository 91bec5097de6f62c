/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_change.c: texts of legal schedules with a few words changed. Most of them are
 * refused; a text that is not must give what the kernel gives, whatever it claims.
 */
#define _POSIX_C_SOURCE 200809L
#include "differential_draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 2048, MOST_CHANGES = 3, WORD_BYTES = 24 };

typedef struct word {
    int at, n;
} word;

static const char *const others[] = {
    "sequential", "threads", "unrolled",   "vector",     "none",     "mask",    "scalar",
    "narrower",   "overlap", "registers",  "frame",      "scratch",  "uniform", "contiguous",
    "strided",    "gather",  "group",      "table",      "through",  "proved",  "unchecked",
    "streams",    "single",  "plain",      "copy",       "ends",     "sums",    "ordered",
    "striped",    "any",        "fill",     "flush",   "begin",
    "end",        "0",       "1",          "4096",       "2147483647", "-1",
    "9223372036854775807"};

/** Words of one kind may stand for one another: instructions, numbers, names with numbers, others.
 */
static int kind_of(const char *w, int n)
{
    bool is_number = *w == '-' || (*w >= '0' && *w <= '9'),
         has_number = w[n - 1] >= '0' && w[n - 1] <= '9';
    return *w == '%' ? 0 : is_number ? 1 : has_number ? 2 : 3;
}

static int find_words(const char *text, word *words)
{
    static const char between[] = " \n;{}=+";
    int n = 0;
    for (const char *at = text; *at && n < MOST_WORDS;) {
        at += strspn(at, between);
        int length = (int)strcspn(at, between);
        if (length > 0 && length < WORD_BYTES)
            words[n++] = (word){(int)(at - text), length};
        at += length;
    }
    return n;
}

/** What a word becomes, which is in `text` or in `number`. */
static const char *choose_word(randoms *r, const char *text, const word *words, int n, word old,
                               char number[WORD_BYTES])
{
    int kind = kind_of(text + old.at, old.n);
    if (random_percent(r, 15))
        return others[random_below(r, (int)(sizeof others / sizeof others[0]))];
    if (kind == 1 && random_percent(r, 40)) {
        int64_t is = strtoll(text + old.at, NULL, 10);
        snprintf(number, WORD_BYTES, "%" PRId64,
                 (int64_t)((uint64_t)is * (random_percent(r, 30) ? 2 : 1) +
                           (uint64_t)random_between(r, -1, 1)));
        return number;
    }
    for (int tries = 0; tries < 20; tries++) {
        const word *w = &words[random_below(r, n)];
        if (kind_of(text + w->at, w->n) == kind) {
            memcpy(number, text + w->at, (size_t)w->n);
            number[w->n] = 0;
            return number;
        }
    }
    return "";
}

/** A line is left out, or stands twice. */
static char *change_line(randoms *r, const char *text, int at)
{
    size_t n = strlen(text), from = (size_t)at;
    char *out = malloc(2 * n + 1);
    while (from > 0 && text[from - 1] != '\n')
        from--;
    size_t end = from + strcspn(text + from, "\n");
    end += text[end] == '\n';
    if (out)
        snprintf(out, 2 * n + 1, "%.*s%s", (int)(random_percent(r, 50) ? from : end), text,
                 text + (random_percent(r, 50) ? end : from));
    return out;
}

char *change_text(const char *text, uint64_t seed)
{
    randoms r = {seed};
    word *words = malloc(MOST_WORDS * sizeof *words);
    char *now = strdup(text), number[WORD_BYTES];
    for (int left = random_percent(&r, 70) ? 1 : MOST_CHANGES; left > 0 && now && words; left--) {
        int n = find_words(now, words);
        if (n == 0)
            break;
        const word old = words[random_below(&r, n)];
        size_t bytes = strlen(now) + WORD_BYTES + 1;
        bool is_line = random_percent(&r, 15);
        char *next = is_line ? change_line(&r, now, old.at) : malloc(bytes);
        if (next && !is_line)
            snprintf(next, bytes, "%.*s%s%s", old.at, now,
                     choose_word(&r, now, words, n, old, number), now + old.at + old.n);
        free(now);
        now = next;
    }
    free(words);
    return now;
}
