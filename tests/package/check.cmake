# Builds consumer/ against tensorgrad in the given `way` and runs it; see CMakeLists.txt beside this.
file(REMOVE_RECURSE "${work_dir}")
set(prefix "${work_dir}/prefix")
set(consumer_build "${work_dir}/build")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endfunction()

if(way STREQUAL "find_package")
  run("${CMAKE_COMMAND}" --install "${build_dir}" --prefix "${prefix}" --config "${config}")
  set(where "-DCMAKE_PREFIX_PATH=${prefix}")
  # An installed package can be moved to another machine: it names no folder of this one.
  file(GLOB_RECURSE package_files "${prefix}/*.cmake")
  foreach(package_file IN LISTS package_files)
    file(READ "${package_file}" text)
    foreach(folder IN ITEMS "${source_dir}" "${build_dir}")
      string(FIND "${text}" "${folder}" position)
      if(NOT position EQUAL -1)
        message(FATAL_ERROR "${package_file} names ${folder}")
      endif()
    endforeach()
  endforeach()
else()
  set(where "-DTENSORGRAD_SOURCE=${source_dir}")
endif()

run("${CMAKE_COMMAND}" -S "${source_dir}/tests/package/consumer" -B "${consumer_build}"
    -G "${generator}" "-DCMAKE_BUILD_TYPE=${config}" "-DCMAKE_CXX_COMPILER=${compiler}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}" "-DCMAKE_CXX_FLAGS=${flags}" "${where}")
run("${CMAKE_COMMAND}" --build "${consumer_build}" --config "${config}")
run("${consumer_build}/consumer")
