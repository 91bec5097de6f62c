/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_passes.cpp: module -> object bytes or PTX with passes that are made once. The C interface of LLVM makes some 130 of them
 * anew for every module, which takes as long as they then run on a small kernel; the C++ interface lets them be kept and
 * run again, as LLVM's own tests do (llc -run-twice). This is all that the library has in C++, without exceptions.
 */
extern "C" {
#include "jit/llvm_passes.h"
}

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <new>

struct qn_passes {
    llvm::SmallVector<char, 4096> bytes;
    llvm::raw_svector_ostream stream{bytes};
    llvm::legacy::PassManager manager;
};

qn_passes *qn__passes_new(LLVMTargetMachineRef machine, int is_text)
{
    auto *target = reinterpret_cast<llvm::TargetMachine *>(machine);
    auto *p = new (std::nothrow) qn_passes;
    auto type = is_text ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (p && target->addPassesToEmitFile(p->manager, p->stream, nullptr, type)) {
        delete p;
        p = nullptr;
    }
    return p;
}

void qn__passes_run(qn_passes *p, LLVMModuleRef module, const char **bytes, size_t *n)
{
    p->bytes.clear();
    p->manager.run(*llvm::unwrap(module));
    *bytes = p->bytes.data();
    *n = p->bytes.size();
}

void qn__passes_free(qn_passes *p)
{
    delete p;
}
