/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.cpp: module -> object bytes or PTX with passes that are made once. The C interface of LLVM
 * makes some 130 of them anew for every module, which takes as long as they then run on a small
 * kernel; the C++ interface lets them be kept and run again, as LLVM's own tests do (llc
 * -run-twice). Large functions go without some of them (docs/lowering.md says why). This is all
 * that the library has in C++, without exceptions.
 */
extern "C" {
#include "jit/emit/passes.h"
}

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <new>

namespace {

/** What a large function goes without on every target, by the names that passes have in LLVM. A
 * name that is not there costs time only. */
constexpr llvm::StringLiteral not_for_large[] = {
    "Machine Instruction Scheduler",
    "Post RA top-down list latency scheduler",
    "Early Machine Loop Invariant Code Motion",
    "Machine Common Subexpression Elimination",
    "Machine code sinking",
    "Machine Copy Propagation Pass",
    "Constant Hoisting",
    "Live Range Shrink",
};

/** LLVM asks its context's gate before each pass that may be left out. */
class gate : public llvm::OptPassGate {
public:
    bool is_large = false;
    const char *const *more = nullptr; // of the target
    bool isEnabled() const override { return is_large; }
    bool shouldRunPass(llvm::StringRef name, llvm::StringRef) override
    {
        for (llvm::StringRef other : not_for_large)
            if (name == other)
                return false;
        for (const char *const *other = more; other && *other; other++)
            if (name == *other)
                return false;
        return true;
    }
};

/** Joins blocks that always follow one another: accesses of several steps of a loop that lie side
 * by side then stand in one block, where the code generator makes one of them. */
void join_blocks(llvm::Module &m)
{
    for (llvm::Function &f : m)
        for (auto at = f.begin(); at != f.end();)
            llvm::MergeBlockIntoPredecessor(&*at++);
}

} // namespace

struct qn_passes {
    llvm::SmallVector<char, 4096> bytes;
    llvm::raw_svector_ostream stream{bytes};
    bool is_text = false;
    gate passes;
    llvm::legacy::PassManager manager;
};

qn_passes *qn__passes_new(LLVMTargetMachineRef machine, int is_text,
                          const char *const *not_for_large_either)
{
    auto *target = reinterpret_cast<llvm::TargetMachine *>(machine);
    auto *p = new (std::nothrow) qn_passes;
    auto type = is_text ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    if (p && target->addPassesToEmitFile(p->manager, p->stream, nullptr, type)) {
        delete p;
        p = nullptr;
    }
    if (p)
        p->passes.more = not_for_large_either;
    if (p)
        p->is_text = is_text != 0;
    return p;
}

void qn__passes_run(qn_passes *p, LLVMModuleRef module, int is_large, const char **bytes, size_t *n)
{
    llvm::Module &m = *llvm::unwrap(module);
    p->bytes.clear();
    llvm::OptPassGate &before = m.getContext().getOptPassGate();
    p->passes.is_large = is_large != 0;
    m.getContext().setOptPassGate(p->passes);
    if (p->is_text)
        join_blocks(m);
    p->manager.run(m);
    m.getContext().setOptPassGate(before);
    p->bytes.push_back(0);
    *bytes = p->bytes.data();
    *n = p->bytes.size() - 1;
}

void qn__passes_free(qn_passes *p)
{
    delete p;
}
