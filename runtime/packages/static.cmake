# SPDX-License-Identifier: Apache-2.0
#
# What is linked statically into the code generator: name, version, licence, and the Debian package that it comes from.
# Sets static_licences to the texts of the licences, and writes the bill of materials, SPDX 2.3 in JSON, which is
# installed with the code generator.

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

set(static_parts
    "LLVM|${llvm_version}|Apache-2.0 WITH LLVM-exception|llvm-19-dev|https://llvm.org"
    "zlib|${zlib_version}|Zlib|zlib1g-dev|https://zlib.net"
    "zstd|${zstd_version}|BSD-3-Clause|libzstd-dev|https://facebook.github.io/zstd"
    "libstdc++|${gcc_version}|GPL-3.0-or-later WITH GCC-exception-3.1|libstdc++-${gcc_version}-dev|https://gcc.gnu.org")

string(TIMESTAMP now "%Y-%m-%dT%H:%M:%SZ" UTC) # of SOURCE_DATE_EPOCH where that is set
string(MD5 parts_hash "${PROJECT_VERSION} ${static_parts}")
set(sbom_packages "")
set(sbom_relations "")
set(static_licences "")
set(missing "")
foreach(part ${static_parts})
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
        string(APPEND static_licences
            "\n${name} ${version} is linked statically into libquern-llvm.so. Its copyright and licence:\n\n${text}\n")
    else()
        list(APPEND missing ${debian})
    endif()
endforeach()
if(missing)
    message(WARNING "/usr/share/doc has no copyright of ${missing}: what is linked statically must not be passed on without")
endif()

configure_file(${CMAKE_CURRENT_LIST_DIR}/quern.spdx.json.in ${generated}/quern.spdx.json @ONLY)
install(FILES ${generated}/quern.spdx.json DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libquern-llvm COMPONENT codegen)
