# cmake --install: libraries (libhalocline_mpi.so among them), headers, the program, and the package files for find_package(Halocline).
include(CMakePackageConfigHelpers)
install(TARGETS halocline_dtype halocline_dtype_kokkos halocline_comm EXPORT HaloclineTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/dtype ${PROJECT_SOURCE_DIR}/lib/comm
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halocline
  FILES_MATCHING PATTERN "*.hpp" PATTERN test EXCLUDE PATTERN bench EXCLUDE PATTERN example EXCLUDE)
install(TARGETS halocline_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS halocline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Halocline)
install(EXPORT HaloclineTargets NAMESPACE halocline:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/lib/cmake/HaloclineConfig.cmake.in
  ${PROJECT_BINARY_DIR}/HaloclineConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HaloclineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HaloclineConfig.cmake ${PROJECT_BINARY_DIR}/HaloclineConfigVersion.cmake
  DESTINATION ${package_dir})
