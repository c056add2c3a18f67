# SPDX-License-Identifier: Apache-2.0
# Writes the header with the version: the project's own, the git revision when there is one, and the
# day of that revision, which is the date of the manual pages.
set(revision "unknown revision")
file(TIMESTAMP ${SOURCE}/CMakeLists.txt date "%Y-%m-%d" UTC)
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision "${found}")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env TZ=UTC
                            git -C ${SOURCE} log -1 --format=%cd --date=format-local:%Y-%m-%d
                    OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
set(header "// Made by the build.\n#pragma once\n\n")
string(APPEND header "#define CULPRIT_VERSION \"${VERSION}\"\n")
string(APPEND header "#define CULPRIT_REVISION \"${revision}\"\n")
string(APPEND header "#define CULPRIT_DATE \"${date}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL header)
  file(WRITE ${OUTPUT} "${header}")
endif()
