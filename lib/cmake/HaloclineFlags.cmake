# halocline_flags: what all of our own targets are compiled with, and nobody who links them.
add_library(halocline_flags INTERFACE)
target_compile_options(halocline_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor $<$<BOOL:${HALOCLINE_WERROR}>:-Werror>
  # g++ 12 reports string concatenations as overlapping copies (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # The same bits for every decomposition, layout and vector width: no contraction into fused multiply-adds.
  -ffp-contract=off)
if(HALOCLINE_MARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  # AVX-512 targets are refused: Debian's g++ 12.2 miscompiles nested copy loops for them (SLP vectoriser).
  if(NOT HALOCLINE_MARCH MATCHES "^x86-64(-v[23])?$")
    message(FATAL_ERROR "HALOCLINE_MARCH is '${HALOCLINE_MARCH}': use x86-64, x86-64-v2 or x86-64-v3")
  endif()
  target_compile_options(halocline_flags INTERFACE -march=${HALOCLINE_MARCH})
endif()
if(HALOCLINE_SANITIZE)
  target_compile_options(halocline_flags INTERFACE
    -fsanitize=${HALOCLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(halocline_flags INTERFACE -fsanitize=${HALOCLINE_SANITIZE})
endif()
