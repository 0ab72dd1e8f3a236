# Prepares CUDA builds (HALOCLINE_CUDA). Enables the language before Kokkos is looked for. Names the
# sources for nvcc: those that include Kokkos, whose headers then are CUDA.
if(HALOCLINE_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # later architectures run its PTX
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
  # NVTX is only headers, which some toolkits leave out.
  find_path(HALOCLINE_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(HALOCLINE_NVTX_INCLUDE)
    message(STATUS "NVTX in ${HALOCLINE_NVTX_INCLUDE}")
  else()
    message(STATUS "NVTX not found (no nvtx3/nvToolsExt.h in the toolkit): profilers of CUDA will see no regions")
  endif()
endif()

# halocline_kokkos_sources(file...): marks the sources of this directory that include Kokkos,
# directly or not.
function(halocline_kokkos_sources)
  if(HALOCLINE_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()

# Kokkos 4.7.00 does not know CUDA 13; an included header helps.
macro(halocline_check_kokkos_for_cuda)
  if(HALOCLINE_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13 AND Kokkos_VERSION VERSION_LESS 4.7.1)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:--pre-include=${PROJECT_SOURCE_DIR}/lib/cmake/kokkos_4.7.00_cuda_13.hpp>")
  endif()
endmacro()
