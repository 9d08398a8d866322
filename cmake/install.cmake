# Install rules: the library, its headers, the tool, and a package for find_package(tensorgrad).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tensorgrad")

install(TARGETS tensorgrad EXPORT tensorgrad-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
if(TARGET tg)
  install(TARGETS tg RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# The WebGPU library, where it is at hand when the package is installed.
install(FILES "${webgpu_library_dir}/dawn.node"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/tensorgrad" OPTIONAL)

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tensorgrad-config.cmake.in"
  "${PROJECT_BINARY_DIR}/tensorgrad-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tensorgrad-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tensorgrad-config.cmake"
              "${PROJECT_BINARY_DIR}/tensorgrad-config-version.cmake"
        DESTINATION "${package_dir}")
install(EXPORT tensorgrad-targets NAMESPACE tensorgrad:: DESTINATION "${package_dir}")
