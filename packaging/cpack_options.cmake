# SPDX-License-Identifier: Apache-2.0
# Read by cpack itself: files of the package bear the time of the source.
get_filename_component(source_folder ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
include(${CMAKE_CURRENT_LIST_DIR}/source_date.cmake)
