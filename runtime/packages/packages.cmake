# SPDX-License-Identifier: Apache-2.0
#
# Packages: what is linked statically and its licences (static.cmake), and the packages of Debian, which CPack makes of
# the install components. `./bootstrap deb` builds them, `./bootstrap package-test` installs them in a new Debian.

if(QUERN_STATIC_LLVM)
    include(${CMAKE_CURRENT_LIST_DIR}/static.cmake)
endif()

# What the tool says about itself becomes its manual page and its completion.
if(TARGET quern AND NOT QUERN_SANITIZE)
    set(pages ${generated}/quern.1)
    add_custom_command(OUTPUT ${pages}.gz ${generated}/quern.bash ${generated}/quern.zsh
        COMMAND quern --man > ${pages}
        COMMAND gzip -9nf ${pages}
        COMMAND quern --completion > ${generated}/quern.bash
        COMMAND quern --completion zsh > ${generated}/quern.zsh
        DEPENDS quern VERBATIM)
    add_custom_target(quern_pages ALL DEPENDS ${pages}.gz ${generated}/quern.bash ${generated}/quern.zsh)
    install(FILES ${pages}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
    install(FILES ${generated}/quern.bash DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions
        RENAME quern COMPONENT tool)
    install(FILES ${generated}/quern.zsh DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions
        RENAME _quern COMPONENT tool)
endif()

# Every package has a file copyright. Those of the code generator and of the tool also hold the licences of what is linked
# statically into them.
function(quern_copyright component package text)
    set(QUERN_COPYRIGHT_STATIC "${text}")
    configure_file(${CMAKE_SOURCE_DIR}/runtime/packages/copyright.in ${generated}/copyright-${package} @ONLY)
    install(FILES ${generated}/copyright-${package} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}
        RENAME copyright COMPONENT ${component})
    install(FILES NOTICE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
endfunction()
set(soname_package libquern${PROJECT_VERSION_MAJOR})
quern_copyright(runtime ${soname_package} "")
quern_copyright(codegen libquern-llvm "${static_licences}")
quern_copyright(tool quern "${tool_licences}")
quern_copyright(dev libquern-dev "")
quern_copyright(doc quern-doc "")
if(TARGET quern_python)
    quern_copyright(python python3-quern "")
endif()
if(TARGET quern_lua_5.4 OR TARGET quern_lua_5.1)
    quern_copyright(lua lua-quern "")
endif()

# ---------------------------------------------------------------------------------------------- Debian

# debian COMPONENT PACKAGE SECTION SUMMARY TEXT KEY VALUE...: one package; keys are those of CPack's DEB generator.
function(quern_debian component package section summary text)
    string(TOUPPER ${component} c)
    set(CPACK_DEBIAN_${c}_PACKAGE_NAME ${package} PARENT_SCOPE)
    set(CPACK_DEBIAN_${c}_FILE_NAME DEB-DEFAULT PARENT_SCOPE)
    set(CPACK_DEBIAN_${c}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${c}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
    while(ARGN)
        list(POP_FRONT ARGN key value)
        set(CPACK_DEBIAN_${c}_${key} "${value}" PARENT_SCOPE)
    endwhile()
endfunction()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME quern)
set(CPACK_PACKAGE_VENDOR "The Quern authors")
set(CPACK_PACKAGE_CONTACT "The Quern authors <noreply@quern.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/deb)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime codegen tool dev doc)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(here "(= ${PROJECT_VERSION})")
set(about "Quern builds array kernels at run time and compiles them for exactly the\narrays they meet.")
quern_debian(runtime ${soname_package} libs "JIT compiler for array kernels"
    "${about} This is the library, which also interprets kernels."
    PACKAGE_SHLIBDEPS ON PACKAGE_RECOMMENDS "libquern-llvm ${here}")
quern_debian(codegen libquern-llvm libs "JIT compiler for array kernels: code generator"
    "${about} This is the code generator, with LLVM\nlinked into it, which the library opens at the first compile."
    PACKAGE_SHLIBDEPS ON PACKAGE_DEPENDS "${soname_package} ${here}")
quern_debian(tool quern devel "JIT compiler for array kernels: tool"
    "${about} This is the tool that runs, times,\nexplains and compiles kernels written as text."
    PACKAGE_SHLIBDEPS ON PACKAGE_DEPENDS "${soname_package} ${here}, libquern-llvm ${here}")
quern_debian(dev libquern-dev libdevel "JIT compiler for array kernels: headers"
    "${about} These are the headers for C, C++ and Fortran, the static\nlibrary, and the files for CMake and pkg-config."
    PACKAGE_DEPENDS "${soname_package} ${here}" PACKAGE_RECOMMENDS "libquern-llvm ${here}" PACKAGE_SUGGESTS quern-doc)
quern_debian(doc quern-doc doc "JIT compiler for array kernels: documentation"
    "${about} These are the pages and the examples."
    PACKAGE_ARCHITECTURE all)
if(TARGET quern_lua_5.4 OR TARGET quern_lua_5.1)
    list(APPEND CPACK_COMPONENTS_ALL lua)
    quern_debian(lua lua-quern interpreters "JIT compiler for array kernels: Lua"
        "${about} This is the module for Lua 5.4 and LuaJIT."
        PACKAGE_SHLIBDEPS ON PACKAGE_DEPENDS "${soname_package} ${here}"
        PACKAGE_RECOMMENDS "libquern-llvm ${here}" PACKAGE_SUGGESTS "lua5.4 | luajit")
endif()
if(TARGET quern_python)
    set(hooks ${CMAKE_SOURCE_DIR}/runtime/packages/python)
    list(APPEND CPACK_COMPONENTS_ALL python)
    quern_debian(python python3-quern python "JIT compiler for array kernels: Python"
        "${about} This is the package for Python 3.11 and later."
        PACKAGE_SHLIBDEPS ON PACKAGE_DEPENDS "python3 (>= 3.11), ${soname_package} ${here}, libquern-llvm ${here}"
        PACKAGE_SUGGESTS python3-numpy)
    set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${hooks}/postinst ${hooks}/prerm)
endif()
include(CPack)
