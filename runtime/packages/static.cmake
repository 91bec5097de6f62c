# SPDX-License-Identifier: Apache-2.0
#
# What is linked statically into the code generator and into the tool: name, version, licence, and the Debian package
# that it comes from. Sets static_licences and tool_licences to the texts of the licences. Writes for each of the two a
# bill of materials, SPDX 2.3 in JSON, which is installed with it.

# header_version VARIABLE HEADER MACROS...: the values of macros, joined by dots.
function(header_version variable header)
    find_file(${variable}_header ${header} REQUIRED)
    set(parts "")
    foreach(macro ${ARGN})
        file(STRINGS ${${variable}_header} line REGEX "^# *define +${macro} ")
        string(REGEX REPLACE "^# *define +${macro} +\"?([0-9.]+).*" "\\1" value "${line}")
        list(APPEND parts "${value}")
    endforeach()
    list(JOIN parts "." text)
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()
header_version(zlib_version zlib.h ZLIB_VERSION)
header_version(zstd_version zstd.h ZSTD_VERSION_MAJOR ZSTD_VERSION_MINOR ZSTD_VERSION_RELEASE)

# libstdc++ is that of the gcc whose folder the compiler searches, .../12/libstdc++.a, whichever compiler runs.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a OUTPUT_VARIABLE libstdcxx
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
cmake_path(GET libstdcxx PARENT_PATH libstdcxx)
cmake_path(GET libstdcxx FILENAME gcc_version)

set(zlib_part "zlib|${zlib_version}|Zlib|zlib1g-dev|https://zlib.net")
set(static_parts
    "LLVM|${llvm_version}|Apache-2.0 WITH LLVM-exception|llvm-19-dev|https://llvm.org"
    "${zlib_part}"
    "zstd|${zstd_version}|BSD-3-Clause|libzstd-dev|https://facebook.github.io/zstd"
    "libstdc++|${gcc_version}|GPL-3.0-or-later WITH GCC-exception-3.1|libstdc++-${gcc_version}-dev|https://gcc.gnu.org")

string(TIMESTAMP now "%Y-%m-%dT%H:%M:%SZ" UTC) # of SOURCE_DATE_EPOCH where that is set

# quern_bill LICENCES BILL FILE PARTS...: sets the variable LICENCES to the texts of the licences of what is linked
# statically into FILE, and writes the bill of materials of the name BILL.
function(quern_bill licences bill file)
    string(MD5 parts_hash "${PROJECT_VERSION} ${ARGN}")
    set(sbom_packages "")
    set(sbom_relations "")
    set(texts "")
    set(missing "")
    foreach(part ${ARGN})
        string(REPLACE "|" ";" fields "${part}")
        list(GET fields 0 name)
        list(GET fields 1 version)
        list(GET fields 2 licence)
        list(GET fields 3 debian)
        list(GET fields 4 home)
        string(REGEX REPLACE "[^A-Za-z0-9.-]" "x" id "SPDXRef-${name}")
        set(source "")
        set(reference "")
        execute_process(COMMAND dpkg-query -W -f "\${Version}" ${debian} OUTPUT_VARIABLE debian_version
            ERROR_QUIET RESULT_VARIABLE failed)
        if(NOT failed)
            set(source "\"sourceInfo\": \"Debian package ${debian} ${debian_version}\",")
            string(REPLACE ":" "%3A" escaped "${debian_version}")
            string(REPLACE "+" "%2B" escaped "${escaped}")
            string(REPLACE "+" "%2B" escaped_name "${debian}")
            set(reference "\"externalRefs\": [{ \"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\",
        \"referenceLocator\": \"pkg:deb/debian/${escaped_name}@${escaped}?arch=amd64\" }],")
        endif()
        string(APPEND sbom_packages ",
    { \"SPDXID\": \"${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\", ${source} ${reference}
      \"downloadLocation\": \"NOASSERTION\", \"homepage\": \"${home}\", \"filesAnalyzed\": false,
      \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\", \"copyrightText\": \"NOASSERTION\" }")
        string(APPEND sbom_relations ",
    { \"spdxElementId\": \"SPDXRef-Quern\", \"relationshipType\": \"STATIC_LINK\", \"relatedSpdxElement\": \"${id}\" }")
        if(EXISTS /usr/share/doc/${debian}/copyright)
            file(READ /usr/share/doc/${debian}/copyright text)
            string(APPEND texts
                "\n${name} ${version} is linked statically into ${file}. Its copyright and licence:\n\n${text}\n")
        else()
            list(APPEND missing ${debian})
        endif()
    endforeach()
    if(missing)
        message(WARNING "/usr/share/doc has no copyright of ${missing}: what is linked statically must not be passed on without")
    endif()

    configure_file(${CMAKE_SOURCE_DIR}/runtime/packages/quern.spdx.json.in ${generated}/${bill} @ONLY)
    set(${licences} "${texts}" PARENT_SCOPE)
endfunction()

quern_bill(static_licences quern.spdx.json libquern-llvm.so ${static_parts})
install(FILES ${generated}/quern.spdx.json DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libquern-llvm COMPONENT codegen)
if(TARGET quern_png)
    header_version(png_version png.h PNG_LIBPNG_VER_STRING)
    quern_bill(tool_licences quern-tool.spdx.json quern
        "libpng|${png_version}|libpng-2.0|libpng-dev|https://libpng.org" "${zlib_part}")
    install(FILES ${generated}/quern-tool.spdx.json DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/quern COMPONENT tool)
endif()
