# SPDX-License-Identifier: Apache-2.0
#
# Writes the texts of the mathematical functions as bytes of a C file, and their names, sorted, with their places there:
# cmake -DINPUTS="a.qn b.qn" -DOUTPUT=math_text.c -P embed.cmake

cmake_minimum_required(VERSION 3.25)
separate_arguments(INPUTS)
set(bytes "")
set(names "")
foreach(input ${INPUTS})
    file(READ ${input} text)
    file(READ ${input} text_bytes HEX)
    string(REGEX MATCHALL "\nfunction \"[a-z0-9_]+\"" found "${text}")
    list(APPEND names ${found})
    string(APPEND bytes "${text_bytes}")
endforeach()

# places: where each definition begins, in digits of `bytes`. In hex "0a66..." is "\nfunction \"".
set(places "")
set(at 0)
set(rest "${bytes}")
while(TRUE)
    string(FIND "${rest}" "0a66756e6374696f6e2022" found)
    if(found EQUAL -1)
        break()
    endif()
    math(EXPR at "${at} + ${found} + 2")
    list(APPEND places ${at})
    math(EXPR found "${found} + 2")
    string(SUBSTRING "${rest}" ${found} -1 rest)
endwhile()
string(LENGTH "${bytes}" end)
list(APPEND places ${end})

set(rows "")
list(LENGTH names n)
math(EXPR last "${n} - 1")
foreach(i RANGE ${last})
    math(EXPR next "${i} + 1")
    list(GET names ${i} name)
    list(GET places ${i} begin)
    list(GET places ${next} end)
    string(REGEX REPLACE "[^\"]*\"([a-z0-9_]+)\"" "\\1" name "${name}")
    math(EXPR begin "${begin} / 2")
    math(EXPR end "${end} / 2")
    list(APPEND rows "${name} ${begin} ${end}")
endforeach()
# A blank sorts before all characters of names, as the end of a name does in strcmp.
list(SORT rows)
list(TRANSFORM rows REPLACE "(.*) (.*) (.*)" "    {\"\\1\", \\2, \\3},\n")
string(CONCAT rows ${rows})

string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"ir/math.h\"\n\nconst unsigned char qn__math_text[] = {\n${bytes}\n};\n\n"
    "const qn_math_definition qn__math_definitions[] = {\n${rows}};\n"
    "const int qn__n_math_definitions = ${n};\nqn_function *_Atomic qn__math_table[${n}];\n")
