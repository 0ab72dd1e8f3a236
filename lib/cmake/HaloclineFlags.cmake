# Defines halocline_flags: the options of all of our own targets, which targets that link them do
# not inherit. halocline_cxx_options holds those of C++, for the program to report.
set(halocline_cxx_options -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
# Without fused multiply-adds, every decomposition, layout and vector width gives the same bits.
set(_codegen -ffp-contract=off)
if(HALOCLINE_WERROR)
  list(APPEND halocline_cxx_options -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 reports string concatenations as overlapping copies (GCC bug 105651).
  list(APPEND halocline_cxx_options -Wno-restrict)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # In a unity build all code is in included files, where g++ warns of classes with members of
  # anonymous types.
  list(APPEND halocline_cxx_options -Wno-subobject-linkage)
endif()
if(HALOCLINE_MARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # AVX-512 targets are refused: Debian's g++ 12.2 miscompiles nested copy loops for them (SLP
  # vectoriser). The kernels that use AVX-512 by attributes are built without this vectoriser.
  if(NOT HALOCLINE_MARCH MATCHES "^x86-64(-v[23])?$")
    message(FATAL_ERROR "HALOCLINE_MARCH is '${HALOCLINE_MARCH}': use x86-64, x86-64-v2 or x86-64-v3")
  endif()
  list(APPEND _codegen -march=${HALOCLINE_MARCH})
endif()
if(HALOCLINE_SANITIZE)
  list(APPEND _codegen -fsanitize=${HALOCLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -Og -g1)
endif()
list(APPEND halocline_cxx_options ${_codegen})
# nvcc itself warns about its sources: the host compiler sees generated code.
list(TRANSFORM _codegen PREPEND -Xcompiler= OUTPUT_VARIABLE _cuda_options)
list(APPEND _cuda_options --fmad=false)  # the same bits on the device
if(HALOCLINE_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  list(APPEND _cuda_options --compress-mode=size)  # saves a fifth: programs are copied to other machines (gpu-pack.sh)
endif()

add_library(halocline_flags INTERFACE)
target_compile_options(halocline_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${halocline_cxx_options}>" "$<$<COMPILE_LANGUAGE:CUDA>:${_cuda_options}>")
if(HALOCLINE_SANITIZE)
  target_link_options(halocline_flags INTERFACE -fsanitize=${HALOCLINE_SANITIZE})
endif()
# GCC's sanitizer is a shared library, so a program may define a pthread_create in front of it.
if(HALOCLINE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_library(halocline_lsan OBJECT ${CMAKE_CURRENT_LIST_DIR}/lsan_mpi.cpp)
  target_link_libraries(halocline_lsan PRIVATE MPI::MPI_CXX)
  target_compile_options(halocline_lsan PRIVATE ${halocline_cxx_options})
  target_sources(halocline_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:halocline_lsan>>)
  target_link_libraries(halocline_flags INTERFACE ${CMAKE_DL_LIBS})
endif()

# Holds the option for code that is never timed: tests, command lines, reports. A build that
# optimises less anyway keeps its own option.
set(halocline_cold "")
if(CMAKE_BUILD_TYPE STREQUAL Release AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[23]")
  set(halocline_cold $<$<COMPILE_LANGUAGE:CXX>:-O1>)
endif()
