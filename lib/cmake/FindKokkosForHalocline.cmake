# Finds a Kokkos that Halocline can use: the site's own first (CMAKE_PREFIX_PATH, Kokkos_ROOT, a module), then the
# copy that jobs/local/build.sh makes in .deps/kokkos. Also included by build.sh's probe, so it stands alone.
set(HALOCLINE_KOKKOS_MINIMUM 4.7)
find_package(Kokkos CONFIG QUIET)
if(Kokkos_FOUND AND Kokkos_VERSION VERSION_LESS HALOCLINE_KOKKOS_MINIMUM)
  message(STATUS "Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} is older than ${HALOCLINE_KOKKOS_MINIMUM}: ignored")
  unset(Kokkos_DIR CACHE)
  set(Kokkos_FOUND FALSE)
endif()
if(NOT Kokkos_FOUND)
  find_package(Kokkos CONFIG QUIET PATHS ${PROJECT_SOURCE_DIR}/.deps/kokkos NO_DEFAULT_PATH)
endif()
if(NOT Kokkos_FOUND)
  message(FATAL_ERROR "Kokkos >= ${HALOCLINE_KOKKOS_MINIMUM} not found (searched CMAKE_PREFIX_PATH, Kokkos_ROOT, .deps/kokkos): "
    "load your site's module, set Kokkos_ROOT, or run jobs/local/build.sh")
endif()
message(STATUS "Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) in ${Kokkos_DIR}")
