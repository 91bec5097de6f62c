# SPDX-License-Identifier: Apache-2.0
#
# Writes a text as bytes of a C file: cmake -DINPUT=a.h.in -DNAME=qn__a -DOUTPUT=a.c -P embed_text.cmake

cmake_minimum_required(VERSION 3.25)
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0};\n")
