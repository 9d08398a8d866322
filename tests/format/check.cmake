# Fails on the first files that clang-format 14 would change. Other versions format differently:
# with one of them the check is skipped.
set(wanted 14)
find_program(clang_format NAMES clang-format-${wanted} clang-format)
if(NOT clang_format)
  message(STATUS "format check skipped: there is no clang-format ${wanted}")
  return()
endif()
execute_process(COMMAND "${clang_format}" --version OUTPUT_VARIABLE version
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT version MATCHES "version ${wanted}[.]")
  message(STATUS "format check skipped: it needs clang-format ${wanted}, this is ${version}")
  return()
endif()

set(files "")
foreach(folder include src tools checks tests examples bench)
  file(GLOB_RECURSE found "${source_dir}/${folder}/*.h" "${source_dir}/${folder}/*.cpp"
       "${source_dir}/${folder}/*.cc")
  list(APPEND files ${found})
endforeach()
list(LENGTH files count)
if(count EQUAL 0)
  message(FATAL_ERROR "there are no C++ files below ${source_dir}")
endif()
execute_process(COMMAND "${clang_format}" --dry-run --Werror --ferror-limit=1 ${files}
                RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "not formatted; run ${clang_format} -i on them:\n${errors}")
endif()
message(STATUS "${count} files are formatted")
