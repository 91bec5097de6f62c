# SPDX-License-Identifier: Apache-2.0
#
# Writes OUTPUT, a C file that defines qn__build_id: the version and a hash over the names and contents of the files
# in LIST (one absolute path a line, sorted). Run by the build when one of them changes.

file(STRINGS ${LIST} files)
set(all "${VERSION}")
foreach(file ${files})
    file(SHA256 ${file} hash)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
    string(APPEND all "\n${name} ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 32 hash)
file(WRITE ${OUTPUT} "extern const char qn__build_id[];\nconst char qn__build_id[] = \"${VERSION}-${hash}\";\n")
