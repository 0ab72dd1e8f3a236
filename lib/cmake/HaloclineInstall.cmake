# Installs libraries, headers, the program, examples, configs, man page, completion, and the files
# by which CMake and pkg-config find them.
include(CMakePackageConfigHelpers)
install(TARGETS halocline_dtype halocline_comm EXPORT HaloclineTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/support ${PROJECT_SOURCE_DIR}/lib/dtype ${PROJECT_SOURCE_DIR}/lib/comm
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halocline
  FILES_MATCHING PATTERN "*.hpp" PATTERN test EXCLUDE PATTERN bench EXCLUDE PATTERN c EXCLUDE PATTERN python EXCLUDE
  PATTERN fortran EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/lib/comm/c/halocline.h ${PROJECT_SOURCE_DIR}/lib/comm/fortran/halocline.F90
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halocline)
install(TARGETS halocline_c EXPORT HaloclineTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(halocline_mpi PROPERTIES EXPORT_NAME mpi)
install(TARGETS halocline_mpi EXPORT HaloclineTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/halocline)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lib/examples/ ${PROJECT_SOURCE_DIR}/lib/comm/interpose/examples/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/halocline/examples)
if(HALOCLINE_KOKKOS)
  install(TARGETS halocline_dtype_kokkos EXPORT HaloclineTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS halocline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/app/halocline.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${PROJECT_SOURCE_DIR}/app/halocline.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME halocline)
endif()
# The path is relative, so that the installation may be moved.
file(RELATIVE_PATH includes_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR}/halocline)
configure_file(${PROJECT_SOURCE_DIR}/lib/cmake/halocline.pc.in ${PROJECT_BINARY_DIR}/halocline.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/lib/cmake/halocline-c.pc.in ${PROJECT_BINARY_DIR}/halocline-c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/halocline.pc ${PROJECT_BINARY_DIR}/halocline-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Halocline)
install(EXPORT HaloclineTargets NAMESPACE halocline:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/lib/cmake/HaloclineConfig.cmake.in
  ${PROJECT_BINARY_DIR}/HaloclineConfig.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HaloclineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HaloclineConfig.cmake ${PROJECT_BINARY_DIR}/HaloclineConfigVersion.cmake
  DESTINATION ${package_dir})
