# SPDX-License-Identifier: Apache-2.0
# Run by cpack before it packs: folders of the package have one mode, whatever the umask of the build.
set(all OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
file(GLOB top LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
file(CHMOD_RECURSE ${top} DIRECTORY_PERMISSIONS ${all})
