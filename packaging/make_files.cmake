# SPDX-License-Identifier: Apache-2.0
# Makes what a package holds beside the program: manual pages, completion, changelog, bill of
# materials. Run by the build with BINARY, SOURCE, OUTPUT, PROJECT_VERSION, CULPRIT_MAINTAINER, GZIP
# and PYTHON.
set(source_folder ${SOURCE})
include(${CMAKE_CURRENT_LIST_DIR}/source_date.cmake)

# Writes what a command prints into a file of OUTPUT.
function(make_file name)
  execute_process(COMMAND ${ARGN} OUTPUT_FILE ${OUTPUT}/${name} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${name} could not be made: ${ARGN}")
  endif()
endfunction()

# -n: neither name nor time goes into it.
function(compress name)
  execute_process(COMMAND ${GZIP} -9nf ${OUTPUT}/${name} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${OUTPUT})
file(MAKE_DIRECTORY ${OUTPUT})
make_file(culprit.1 ${BINARY} manual culprit)
make_file(culprit.yaml.5 ${BINARY} manual culprit.yaml)
make_file(culprit.bash ${BINARY} completion bash)
make_file(culprit.zsh ${BINARY} completion zsh)
make_file(culprit.fish ${BINARY} completion fish)
make_file(culprit.cdx.json ${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/make_sbom ${BINARY} ${SOURCE})
string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH
configure_file(${CMAKE_CURRENT_LIST_DIR}/debian/changelog.in ${OUTPUT}/changelog @ONLY)
compress(culprit.1)
compress(culprit.yaml.5)
compress(changelog)
file(TOUCH ${OUTPUT}/made)
