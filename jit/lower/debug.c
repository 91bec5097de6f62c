/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug.c: line numbers for debuggers: each instruction of LLVM gets the line that the instruction
 * of the kernel has in its printed text, which the runtime has written to a file. Values are not
 * described.
 */
#include "jit/lower/debug.h"
#include "jit/lower/lower.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

struct qn_debug {
    LLVMModuleRef module;
    LLVMDIBuilderRef builder;
    LLVMMetadataRef file, type;
    const char *name;
    uint32_t *line; /* [n_insts] */
};

static void add_flag(LLVMModuleRef module, const char *name, unsigned value)
{
    LLVMContextRef context = LLVMGetModuleContext(module);
    LLVMValueRef number = LLVMConstInt(LLVMInt32TypeInContext(context), value, false);
    LLVMAddModuleFlag(module, LLVMModuleFlagBehaviorWarning, name, strlen(name),
                      LLVMValueAsMetadata(number));
}

qn_debug *qn__debug_begin(LLVMModuleRef module, const qn_kernel *k, const char *path,
                          const char *name)
{
    qn_debug *d = qn__zalloc(1, sizeof *d);
    uint32_t *line = qn__zalloc(k->n_insts, sizeof *line);
    if (!d || !line || !qn__print_lines(k, line)) {
        qn__free(line);
        qn__free(d);
        return NULL;
    }
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    *d = (qn_debug){
        .module = module, .builder = LLVMCreateDIBuilder(module), .name = name, .line = line};
    d->file = LLVMDIBuilderCreateFile(d->builder, base, strlen(base), path, (size_t)(base - path));
    LLVMDIBuilderCreateCompileUnit(d->builder, LLVMDWARFSourceLanguageC11, d->file, "quern", 5,
                                   true, "", 0, 0, "", 0, LLVMDWARFEmissionLineTablesOnly, 0, false,
                                   false, "", 0, "", 0);
    d->type = LLVMDIBuilderCreateSubroutineType(d->builder, d->file, NULL, 0, LLVMDIFlagZero);
    add_flag(module, "Debug Info Version", LLVMDebugMetadataVersion());
    add_flag(module, "Dwarf Version", 4);
    return d;
}

void qn__debug_end(qn_debug *d)
{
    if (!d)
        return;
    LLVMDIBuilderFinalize(d->builder);
    LLVMDisposeDIBuilder(d->builder);
    qn__free(d->line);
    qn__free(d);
}

void qn__debug_function(lower *g)
{
    qn_debug *d = g->debug;
    if (!d)
        return;
    g->scope = LLVMDIBuilderCreateFunction(d->builder, d->file, d->name, strlen(d->name), d->name,
                                           strlen(d->name), d->file, 1, d->type, false, true, 1,
                                           LLVMDIFlagZero, true);
    LLVMSetSubprogram(g->function, g->scope);
    LLVMSetCurrentDebugLocation2(
        g->b, LLVMDIBuilderCreateDebugLocation(g->context, 1, 0, g->scope, NULL));
}

void qn__debug_at(lower *g, uint32_t i)
{
    if (!g->debug || !g->debug->line[i])
        return;
    LLVMSetCurrentDebugLocation2(
        g->b, LLVMDIBuilderCreateDebugLocation(g->context, g->debug->line[i], 0, g->scope, NULL));
}
