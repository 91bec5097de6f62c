/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_facts.c: facts under each policy and their slots; keys: round trip, that every field counts,
 * that malformed keys are refused and cut or flipped ones never crash.
 */
#include "jit/jit.h"
#include "tests/unit/launch.h"

typedef struct setup {
    qn_kernel *k;
    qn_view a, b;
    qn_arg args[3];
    qn_domain domain;
    uint8_t proved[8];
} setup;

static qn_status collect(const setup *s, const qn_policy *policy, qn_facts *out)
{
    const qn_options o = {.bytes = sizeof o,
                          .plan = PLAN_WITH(.width = 8, .unroll = 2),
                          .schedule = "schedule {\n  axis d0 6;\n}"};
    return qn__facts_collect(
        s->k, &(qn_launched){s->args, &s->domain, s->proved, &o, policy, QN_ISA_V3, false}, out,
        NULL);
}

/** scale over two matrices of 6 x 10, the first with rows of 12. */
static void set_up(setup *s)
{
    static double memory[256] __attribute__((aligned(64)));
    memset(s, 0, sizeof *s);
    s->k = kernel_of(SCALE_TEXT);
    const int64_t extents[] = {6, 10}, strides[] = {12, 1};
    qn_layout l;
    qn_layout_strided(2, extents, strides, &l, NULL);
    qn_view_wrap("a", memory, QN_F64, &l, 0, &s->a, NULL);
    qn_layout_right(2, extents, &l, NULL);
    qn_view_wrap("b", memory + 128, QN_F64, &l, 0, &s->b, NULL);
    s->args[0] = qn_arg_view(&s->a);
    s->args[1] = qn_arg_view(&s->b);
    s->args[2] = qn_arg_f64(2.5);
    const qn_arg_value values[] = {{.layout = &s->a.layout}, {.layout = &s->b.layout}, {.bits = 0}};
    tap_ok(qn__domain(s->k, values, false, &s->domain, NULL) == QN_OK, "domain of the test kernel");
    s->proved[0] = 1;
}

static void test_exact(const setup *s)
{
    qn_facts f;
    const qn_policy exact = {0};
    tap_ok(collect(s, &exact, &f) == QN_OK, "exact facts are collected");
    tap_is_int(f.n_slots, 3, "two data pointers and a scalar have slots");
    tap_ok(f.param[0].slot == 0 && f.param[1].slot == 1 && f.param[2].slot == 2,
           "in the order of the parameters");
    tap_is_int(f.digit[0].stride.value, 12, "an exact stride");
    tap_is_int(f.digit[0].extent.value, 0, "the extent of a last digit is not a fact");
    tap_ok(f.end[1].kind == QN_FACT_EXACT && f.end[1].value == 10, "the domain is exact");
    int64_t slots[3] = {0};
    qn__facts_fill(&f, s->k, s->args, slots);
    tap_ok(slots[0] == (int64_t)(intptr_t)s->a.data && (uint64_t)slots[2] == s->args[2].bits,
           "the block is filled");
    qn__facts_release(&f);
}

static void test_dynamic(const setup *s)
{
    qn_facts f;
    const qn_policy dynamic = {.all_dynamic = true};
    tap_ok(collect(s, &dynamic, &f) == QN_OK, "dynamic facts are collected");
    tap_is_int(f.n_slots, 9, "per view: data, two extents and one stride; the scalar");
    tap_ok(f.digit[1].stride.kind == QN_FACT_EXACT && f.digit[1].stride.value == 1,
           "the unit stride stays exact");
    tap_ok(f.param[0].dim[0].lower.kind == QN_FACT_EXACT, "a lower bound of 0 stays exact");
    tap_ok(f.end[0].kind == QN_FACT_DYNAMIC && f.end[0].slot == -1,
           "the end of the domain is computed");
    tap_ok(f.begin[0].kind == QN_FACT_EXACT, "its begin is a constant");
    int64_t slots[9];
    const int64_t expected[] = {(int64_t)(intptr_t)s->a.data, 6, 12, 10,
                                (int64_t)(intptr_t)s->b.data, 6, 10, 10,
                                (int64_t)s->args[2].bits};
    qn__facts_fill(&f, s->k, s->args, slots);
    tap_ok(memcmp(slots, expected, sizeof slots) == 0,
           "slots: data, then extent and stride of each dimension");
    qn__facts_release(&f);

    const uint32_t masks[] = {2, 0, 0};
    const qn_policy some = {.dynamic_extents = masks, .constant_scalars = true};
    tap_ok(collect(s, &some, &f) == QN_OK, "some extents dynamic");
    tap_ok(f.param[0].dim[1].extent.kind == QN_FACT_DYNAMIC &&
               f.param[0].dim[0].extent.kind == QN_FACT_EXACT,
           "only those of the mask");
    tap_ok(f.digit[0].stride.kind == QN_FACT_DYNAMIC && f.digit[2].stride.kind == QN_FACT_EXACT,
           "strides of that view follow, those of others do not");
    tap_ok(f.param[2].is_constant && f.param[2].bits[0] == s->args[2].bits, "a constant scalar");
    tap_ok(f.end[1].kind == QN_FACT_EXACT, "the domain depends on the other view only");
    qn__facts_release(&f);
}

static void test_special_dims(const setup *s)
{
    setup t = *s;
    t.args[0] = qn_arg_view(&t.a);
    const int64_t extents[] = {1, 10}, odd[] = {777, 1}, even[] = {64, 1};
    qn_facts f, g;
    qn_text key_f = {0}, key_g = {0};
    const qn_policy exact = {0};
    qn_layout_strided(2, extents, odd, &t.a.layout, NULL);
    collect(&t, &exact, &f);
    qn_layout_strided(2, extents, even, &t.a.layout, NULL);
    collect(&t, &exact, &g);
    qn__key_encode(&f, &key_f);
    qn__key_encode(&g, &key_g);
    tap_ok(key_f.n == key_g.n && memcmp(key_f.data, key_g.data, key_f.n) == 0,
           "the stride of a dimension of one index does not count");
    qn__text_release(&key_f);
    qn__text_release(&key_g);
    qn__facts_release(&f);
    qn__facts_release(&g);

    const int64_t whole[] = {6, 10}, tile[] = {4, 8};
    qn_layout tiled;
    qn_layout_tiled(2, whole, tile, NULL, NULL, &tiled, NULL);
    t.a.layout = tiled;
    const qn_policy dynamic = {.all_dynamic = true};
    collect(&t, &dynamic, &f);
    const qn_dim_fact *dim = &f.param[0].dim[0];
    tap_ok(dim->n_digits == 2 && f.digit[dim->first_digit].extent.kind == QN_FACT_EXACT &&
               f.digit[dim->first_digit].extent.value == 4,
           "tile extents stay exact");
    qn__facts_release(&f);
    qn_layout_release(&tiled);
}

static bool is_same_key(const qn_facts *f, const qn_text *key)
{
    qn_text again = {0};
    qn__key_encode(f, &again);
    bool is_same = again.n == key->n && memcmp(again.data, key->data, key->n) == 0;
    qn__text_release(&again);
    return is_same;
}

static void test_round_trip(const setup *s, const qn_policy *policy, const char *name)
{
    qn_facts f, back = {0};
    qn_text key = {0}, text = {0}, text_back = {0};
    collect(s, policy, &f);
    qn__key_encode(&f, &key);
    tap_ok(qn__key_decode(key.data, key.n, &back, NULL) == QN_OK, "%s: the key is read back", name);
    tap_ok(is_same_key(&back, &key), "%s: and gives the same bytes", name);
    qn__key_print(&f, s->k, &text);
    qn__key_print(&back, s->k, &text_back);
    tap_is_str(text_back.data, text.data, "slots and values are the same as text");
    qn__text_release(&text);
    qn__text_release(&text_back);
    qn__text_release(&key);
    qn__facts_release(&f);
    qn__facts_release(&back);
}

/* Each line changes one fact; the key must change with it. */
#define MUTATIONS(X)                                                                               \
    X(f.isa = QN_ISA_V4)                                                                           \
    X(f.checks = QN_CHECKS_CLAMP)                                                                  \
    X(f.param[0].checks = QN_CHECKS_CLAMP)                                                         \
    X(f.is_ordered = 1)                                                                            \
    X(f.atomics ^= 1)                                                                              \
    X(f.is_portable ^= 1)                                                                          \
    X(f.is_large ^= 1)                                                                             \
    X(f.prints_rows ^= 1)                                                                          \
    X(f.machine.cache[QN_CACHE_FIRST].bytes = 48 << 10)                                            \
    X(f.machine.cache[QN_CACHE_FIRST].ways = 12)                                                   \
    X(f.machine.cache[QN_CACHE_FIRST].line = 128)                                                  \
    X(f.machine.cache[QN_CACHE_SECOND].bytes *= 2)                                                 \
    X(f.machine.cache[QN_CACHE_SECOND].ways = 16)                                                  \
    X(f.machine.cache[QN_CACHE_LAST].bytes *= 2)                                                   \
    X(f.machine.core = QN_CORE_GOLDEN_COVE)                                                        \
    X(f.plan.order[1] = 1)                                                                         \
    X(f.schedule[1] = 'C')                                                                         \
    X(f.schedule_bytes--)                                                                          \
    X((qn__free(f.schedule), f.schedule = NULL))                                                   \
    X(f.begin[0].value = 1)                                                                        \
    X(f.end[1].value = 11)                                                                         \
    X(f.end[1].kind = QN_FACT_DYNAMIC)                                                             \
    X(f.param[0].dim[0].lower.value = 1)                                                           \
    X(f.param[0].dim[1].extent.value = 11)                                                         \
    X(f.digit[0].stride.value = 13)                                                                \
    X(f.digit[0].stride.kind = QN_FACT_DYNAMIC)                                                    \
    X((f.param[2].is_constant = 1, f.param[2].bits[0] = 5))                                        \
    X(f.param[0].unit = 2)                                                                         \
    X(f.proved[0] = 0)                                                                             \
    X(f.proved[1] = 1)                                                                             \
    X(f.n_accesses = 1)

static void test_every_field_counts(const setup *s)
{
    const qn_policy exact = {0};
    qn_facts f;
    qn_text key = {0};
    collect(s, &exact, &f);
    qn__key_encode(&f, &key);
    qn__facts_release(&f);
#define X(mutation)                                                                                \
    collect(s, &exact, &f);                                                                        \
    mutation;                                                                                      \
    tap_ok(!is_same_key(&f, &key), "%s changes the key", #mutation);                               \
    qn__facts_release(&f);
    MUTATIONS(X)
#define PLAN(name, text, least, most, names_dim) X(f.plan.name ^= 1)
    QN_PLAN_LIST(PLAN)
#undef PLAN
#undef X
    qn__text_release(&key);
}

/* The text has a line of what a caller fixes of the plan, where something is. */
static void test_text_of_plan(const setup *s)
{
    const qn_policy exact = {0};
    qn_facts f;
    qn_text none = {0}, some = {0};
    collect(s, &exact, &f);
    f.plan = (qn_plan_options){.bytes = sizeof f.plan};
    qn__key_print(&f, s->k, &none);
    f.plan.width = 8;
    qn__key_print(&f, s->k, &some);
    tap_ok(!strstr(none.data, "plan:"), "nothing is fixed: no line");
    tap_contains(some.data, "\nplan: width 8\n", "a field is fixed: a line");
    qn__text_release(&none);
    qn__text_release(&some);
    qn__facts_release(&f);
}

/* What only NVPTX has. */
static void test_gpu(const setup *s)
{
    const qn_policy exact = {0};
    qn_facts f, back = {0};
    qn_text key = {0}, text = {0};
    tap_ok(qn__facts_collect(
               s->k,
               &(qn_launched){s->args, &s->domain, s->proved, NULL, &exact, QN_ISA_SM80, false}, &f,
               NULL) == QN_OK,
           "facts for a GPU");
    tap_is_int(f.ptx, 70, "sm_80 takes PTX 7.0");
    tap_ok(f.param[0].is_constant_memory != s->k->param[0].is_written,
           "constant memory is what is not written");
    qn__key_encode(&f, &key);
    tap_ok(qn__key_decode(key.data, key.n, &back, NULL) == QN_OK && is_same_key(&back, &key),
           "the key is read back");
    qn__key_print(&back, s->k, &text);
    tap_contains(text.data, "target sm_80: ", "and printed");
    tap_contains(text.data, ", ptx 70", "with the version of PTX");
    tap_contains(text.data, "128 multiprocessors", "with the record of the GPU");
    back.machine.multiprocessors = 64;
    tap_ok(!is_same_key(&back, &key), "multiprocessors change the key");
    back.machine.multiprocessors = f.machine.multiprocessors;
    back.machine.threads = 1536;
    tap_ok(!is_same_key(&back, &key), "threads of a multiprocessor change the key");
    back.machine.threads = f.machine.threads;
    back.machine.shared_bytes = 100 << 10;
    tap_ok(!is_same_key(&back, &key), "shared memory changes the key");
    back.machine.shared_bytes = f.machine.shared_bytes;
    back.machine.cache[0].bytes = 1 << 20;
    tap_ok(is_same_key(&back, &key), "caches of the host do not");
    back.param[0].align ^= 1;
    tap_ok(!is_same_key(&back, &key), "the alignment changes the key");
    back.param[0].align ^= 1;
    back.param[0].is_constant_memory ^= 1;
    tap_ok(!is_same_key(&back, &key), "so does whether memory is constant");
    tap_is_int(qn__isa_of_gpu(120), QN_ISA_SM90, "newer GPUs take the newest");
    tap_is_int(qn__isa_of_gpu(60), 0, "older ones none");
    qn_gpu_step step = {.tile = {4, 0}};
    int64_t rows = s->domain.end[0] - s->domain.begin[0];
    tap_is_int(qn__gpu_units(&step, s->k, &s->domain), (rows + 3) / 4,
               "units are tiles, rounded up");
    qn__text_release(&key);
    qn__text_release(&text);
    qn__facts_release(&f);
    qn__facts_release(&back);
}

static void test_malformed(const setup *s)
{
    const qn_policy dynamic = {.all_dynamic = true};
    qn_facts f, back;
    qn_text key = {0};
    qn_error err = {0};
    collect(s, &dynamic, &f);
    qn__key_encode(&f, &key);
    qn__facts_release(&f);
    int n_read = 0;
    for (size_t n = 0; n < key.n; n++) {
        char *cut = malloc(n + 1); /* so that a sanitizer sees reads beyond */
        memcpy(cut, key.data, n);
        n_read += qn__key_decode(cut, n, &back, NULL) == QN_OK;
        free(cut);
    }
    tap_is_int(n_read, 0, "no beginning of a key is a key");
    int n_changed = 0;
    for (size_t bit = 0; bit < 8 * key.n; bit++) {
        key.data[bit / 8] ^= (char)(1 << bit % 8);
        if (qn__key_decode(key.data, key.n, &back, NULL) == QN_OK) {
            n_changed += !is_same_key(&back, &key);
            qn__facts_release(&back);
        }
        key.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    tap_is_int(n_changed, 0, "a flipped bit is refused, or is another key in canonical form");
    qn__text_bytes(&key, "", 1);
    tap_ok(qn__key_decode(key.data, key.n, &back, &err) == QN_ERR_INTERNAL,
           "a byte too many is refused");
    tap_contains(err.message, "malformed key", "with a message");
    tap_ok(qn__key_decode(NULL, 3, &back, NULL) == QN_ERR_ARGUMENT, "NULL is refused");
    qn__text_release(&key);
}

int main(void)
{
    setup s;
    set_up(&s);
    test_exact(&s);
    test_dynamic(&s);
    test_special_dims(&s);
    const qn_policy exact = {.constant_scalars = true}, dynamic = {.all_dynamic = true};
    test_round_trip(&s, &exact, "exact");
    test_round_trip(&s, &dynamic, "dynamic");
    test_every_field_counts(&s);
    test_text_of_plan(&s);
    test_gpu(&s);
    test_malformed(&s);
    qn_kernel_release(s.k);
    return tap_done();
}
