# SPDX-License-Identifier: Apache-2.0
#
# Writes the texts of the mathematical functions as bytes of a C file: cmake -DINPUTS="a.qn b.qn" -DOUTPUT=math_text.c -P embed.cmake

separate_arguments(INPUTS)
set(bytes "")
foreach(input ${INPUTS})
    file(READ ${input} text HEX)
    string(APPEND bytes "${text}")
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <stddef.h>\nextern const unsigned char qn__math_text[];\nextern const size_t qn__math_bytes;\n"
    "const unsigned char qn__math_text[] = {\n${bytes}\n};\nconst size_t qn__math_bytes = sizeof qn__math_text;\n")
