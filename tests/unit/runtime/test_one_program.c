/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_one_program.c: the library and the provider linked into one program, which fails where both
 * define a name; and a launch by the provider that is here.
 */
#include "runtime/context.h"
#include "tests/unit/launch.h"

#ifdef QN_HAS_PROVIDER

int qn_llvm_provider(qn_request *r);

/** The engine of a context is the provider of this program: nothing is loaded. */
static qn_context *context_of_program(void)
{
    qn_context *c = context_with(&(qn_context_options){.bytes = sizeof(qn_context_options),
                                                       .provider_path = "/nonexistent"});
    qn_request r = {.bytes = sizeof r, .build_id = QN_BUILD_ID, .kind = QN_REQUEST_START};
    tap_is_int(qn_llvm_provider(&r), QN_OK, "the provider starts");
    c->compiler.function = qn_llvm_provider;
    c->compiler.provider = QN_PROVIDER_READY;
    return c;
}

int main(void)
{
    qn_context *c = context_of_program();
    if (c->isa == 0) {
        tap_skip("the processor is below x86-64-v3");
        qn_context_release(c);
        return tap_done();
    }
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 100), y = vector_of(c, "y", QN_F32, 100);
    fill_f32(&x, 1, 1);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_error err = {0};
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_OK, "a launch: %s", err.message);
    tap_ok(memcmp(x.data, y.data, 100 * sizeof(float)) == 0, "which copies");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    return tap_done();
}

#else

int main(void)
{
    tap_skip("LLVM is linked statically here, or there is none");
    return tap_done();
}

#endif
