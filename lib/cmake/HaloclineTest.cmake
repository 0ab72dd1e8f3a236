# Defines tests that start under mpiexec, and the environment of every test.
find_package(GTest REQUIRED)

# Holds one VARIABLE=value per entry. They let Open MPI 4 and 5 run more ranks than cores, as root
# or not. They ignore a user's settings, and make the reports of sanitizers useful.
set(HALOCLINE_TEST_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_mpi_yield_when_idle=1
  # Expected failures end at once: by default Open MPI 4 waits a second or two for ranks that have
  # already ended.
  OMPI_MCA_odls_base_sigkill_timeout=0
  # Containers often forbid the system call for single-copy; Open MPI then complains at every start.
  OMPI_MCA_btl_vader_single_copy_mechanism=none
  OMP_NUM_THREADS=1
  # A user's own system model would choose other methods.
  HALOCLINE_MODEL=
  XDG_CONFIG_HOME=${PROJECT_BINARY_DIR}/no-config
  # Threads that spin while they wait make tests many times slower if other ranks need the cores.
  OMP_WAIT_POLICY=passive)
if(HALOCLINE_SANITIZE)
  list(APPEND HALOCLINE_TEST_ENVIRONMENT UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1)
  if(NOT TARGET halocline_lsan)  # otherwise memory that MPI keeps would be reported
    list(APPEND HALOCLINE_TEST_ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
endif()

# halocline_test_environment(<test>...): gives tests of this directory HALOCLINE_TEST_ENVIRONMENT,
# and each a folder of its own for Open MPI's files. By default, the jobs of a user share a folder
# that the first job to end removes. Their own settings stay.
function(halocline_test_environment)
  foreach(test IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "${test}" folder)
    set(folder ${PROJECT_BINARY_DIR}/mpi/${folder})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT ${HALOCLINE_TEST_ENVIRONMENT}
      OMPI_MCA_orte_tmpdir_base=${folder} PRTE_MCA_prte_tmpdir_base=${folder})
  endforeach()
endfunction()

# halocline_add_mpi_test(NAME name SOURCES file... RANKS n... [LIBS target...] [ARGS arg...]
# [TIMEOUT seconds]
#                        [LABELS label...])
# Adds one executable with the main of halocline_test_main, and one test NAME/np<N> per number of
# ranks, always under mpiexec.
function(halocline_add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "SOURCES;LIBS;RANKS;ARGS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES OR NOT arg_RANKS)
    message(FATAL_ERROR "halocline_add_mpi_test: NAME, SOURCES and RANKS are needed; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
    if(HALOCLINE_SANITIZE)
      set(arg_TIMEOUT 300)
    endif()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE halocline_test_main ${arg_LIBS} halocline_flags)
  target_compile_options(${arg_NAME} PRIVATE ${halocline_cold})
  foreach(ranks IN LISTS arg_RANKS)
    set(test ${arg_NAME}/np${ranks})
    add_test(NAME ${test}
      COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
              $<TARGET_FILE:${arg_NAME}> ${MPIEXEC_POSTFLAGS} ${arg_ARGS})
    set_tests_properties(${test} PROPERTIES
      PROCESSORS ${ranks} TIMEOUT ${arg_TIMEOUT} LABELS "ranks-${ranks};${arg_LABELS}")
    halocline_test_environment(${test})
  endforeach()
endfunction()
