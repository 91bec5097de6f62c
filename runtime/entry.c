/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.c: entries as bytes, see entry.h. Little endian:
 *
 *     0  "qncache\n"
 *     8  u32 version of this form, u32 kind
 *    16  u64 bytes of the whole entry
 *    24  u64 bytes of each part
 *    80  digest of all that is not the digest
 *   112  the parts, one after the other
 */
#include "runtime/entry.h"

#include <string.h>

enum {
    FORM_VERSION = 1,
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_BYTES = 16,
    AT_PARTS = 24,
    AT_DIGEST = AT_PARTS + 8 * QN_N_STORED
};
_Static_assert(AT_DIGEST + QN_DIGEST_BYTES == QN_ENTRY_HEAD_BYTES, "the head is its fields");
static const char magic[8] = {'q', 'n', 'c', 'a', 'c', 'h', 'e', '\n'};

const char *qn__entry_kind(int32_t kind)
{
    switch (kind) {
#define QN_X(name, number, text)                                                                   \
    case number:                                                                                   \
        return text;
        QN_ENTRY_KIND_LIST(QN_X)
#undef QN_X
    default:
        return "?";
    }
}

/* ---------------------------------------------------------------- names */

qn_entry_name qn__entry_name(const qn_stored *e)
{
    static const char digit[] = "0123456789abcdef";
    uint8_t bytes[QN_DIGEST_BYTES];
    qn_entry_name name = {{0}};
    qn_digest d;
    qn__digest_begin(&d);
    qn__digest_add(&d, &e->kind, sizeof e->kind);
    for (int i = 0; i < QN_N_IDENTITY; i++)
        qn__digest_add(&d, &e->part[i].n, sizeof e->part[i].n);
    for (int i = 0; i < QN_N_IDENTITY; i++)
        qn__digest_add(&d, e->part[i].data, (size_t)e->part[i].n);
    qn__digest_end(&d, bytes);
    for (int i = 0; i < QN_ENTRY_NAME_DIGITS; i++)
        name.text[i] = digit[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
    return name;
}

bool qn__entry_is_name(const char *text)
{
    return strspn(text, "0123456789abcdef") == QN_ENTRY_NAME_DIGITS &&
           text[QN_ENTRY_NAME_DIGITS] == 0;
}

bool qn__entry_is_same(const qn_stored *a, const qn_stored *b)
{
    bool is_same = a->kind == b->kind;
    for (int i = 0; i < QN_N_IDENTITY && is_same; i++)
        is_same = a->part[i].n == b->part[i].n &&
                  (a->part[i].n == 0 ||
                   memcmp(a->part[i].data, b->part[i].data, (size_t)a->part[i].n) == 0);
    return is_same;
}

/* ---------------------------------------------------------------- bytes */

static void digest_of(const uint8_t *bytes, size_t n, uint8_t out[QN_DIGEST_BYTES])
{
    qn_digest d;
    qn__digest_begin(&d);
    qn__digest_add(&d, bytes, AT_DIGEST);
    qn__digest_add(&d, bytes + QN_ENTRY_HEAD_BYTES, n - QN_ENTRY_HEAD_BYTES);
    qn__digest_end(&d, out);
}

void qn__entry_write(const qn_stored *e, qn_text *out)
{
    uint8_t head[QN_ENTRY_HEAD_BYTES] = {0};
    const uint32_t version = FORM_VERSION;
    size_t start = out->n;
    uint64_t bytes = sizeof head;
    for (int i = 0; i < QN_N_STORED; i++) {
        bytes += e->part[i].n;
        memcpy(head + AT_PARTS + 8 * i, &e->part[i].n, 8);
    }
    memcpy(head, magic, sizeof magic);
    memcpy(head + AT_VERSION, &version, 4);
    memcpy(head + AT_KIND, &e->kind, 4);
    memcpy(head + AT_BYTES, &bytes, 8);
    qn__text_bytes(out, head, sizeof head);
    for (int i = 0; i < QN_N_STORED; i++)
        qn__text_bytes(out, e->part[i].n ? e->part[i].data : "", (size_t)e->part[i].n);
    if (out->failed)
        return;
    uint8_t digest[QN_DIGEST_BYTES];
    digest_of((const uint8_t *)out->data + start, out->n - start, digest);
    memcpy(out->data + start + AT_DIGEST, digest, sizeof digest);
}

/** The parts behind a head; false if they are not as long as the entry. */
static bool read_parts(const uint8_t *bytes, size_t n, qn_stored *out)
{
    uint64_t at = QN_ENTRY_HEAD_BYTES;
    for (int i = 0; i < QN_N_STORED; i++) {
        uint64_t length;
        memcpy(&length, bytes + AT_PARTS + 8 * i, 8);
        if (length > n - at)
            return false;
        out->part[i] = (qn_stored_part){bytes + at, length};
        at += length;
    }
    return at == n;
}

const char *qn__entry_read(const void *p, size_t n, qn_stored *out)
{
    const uint8_t *bytes = p;
    uint32_t version;
    uint64_t whole;
    uint8_t digest[QN_DIGEST_BYTES];
    qn_stored e = {0};
    if (n < QN_ENTRY_HEAD_BYTES)
        return "it is too short for an entry";
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return "it is not an entry";
    memcpy(&version, bytes + AT_VERSION, 4);
    if (version != FORM_VERSION)
        return "its form is of another version";
    memcpy(&whole, bytes + AT_BYTES, 8);
    if (whole != n)
        return "it is not as long as it says";
    digest_of(bytes, n, digest);
    if (memcmp(digest, bytes + AT_DIGEST, sizeof digest) != 0)
        return "its digest is wrong";
    memcpy(&e.kind, bytes + AT_KIND, 4);
    if (!read_parts(bytes, n, &e))
        return "its parts are not as long as it is";
    *out = e;
    return NULL;
}
