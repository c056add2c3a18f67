# SPDX-License-Identifier: Apache-2.0
# Writes the header with the version: the project's own, and the git revision when there is one.
set(revision "unknown revision")
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision "${found}")
  endif()
endif()
set(header "// Made by the build.\n#pragma once\n\n")
string(APPEND header "#define CULPRIT_VERSION \"${VERSION}\"\n")
string(APPEND header "#define CULPRIT_REVISION \"${revision}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL header)
  file(WRITE ${OUTPUT} "${header}")
endif()
