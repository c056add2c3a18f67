# SPDX-License-Identifier: Apache-2.0
# The time that made files and packages bear: SOURCE_DATE_EPOCH when it is given, else that of the
# revision, so that the same source gives the same bytes. Needs `source_folder`.
if("$ENV{SOURCE_DATE_EPOCH}" STREQUAL "")
  file(TIMESTAMP ${source_folder}/CMakeLists.txt epoch "%s" UTC)
  if(EXISTS ${source_folder}/.git)
    execute_process(COMMAND git -C ${source_folder} log -1 --format=%ct
                    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
                    ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      set(epoch ${found})
    endif()
  endif()
  set(ENV{SOURCE_DATE_EPOCH} ${epoch})
endif()
