# Runs discover_suites.cmake on a program that lists a few suites, and compares entries and labels.
set(folder sample)
set(program "${work_dir}/program")
set(cache "${work_dir}/cache")
set(tests "")
foreach(i RANGE 1 250)
  string(APPEND tests "  Test/${i}\n")
endforeach()
file(WRITE "${program}" "#!/bin/sh
cat <<'END'
Plain.
  One
  SlowOne
Ops/Forward.
${tests}Random/Fuzz.
${tests}Random/GpuFuzz.
  Test/1
END
")
file(CHMOD "${program}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

# The entries that ctest would get.
set_property(GLOBAL PROPERTY entries "")
function(add_test name)
endfunction()
function(set_tests_properties name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "" "PROPERTIES")
  list(FIND given_PROPERTIES TIMEOUT end) # the labels stand before it
  list(SUBLIST given_PROPERTIES 1 ${end} labels)
  list(REMOVE_ITEM labels TIMEOUT)
  list(JOIN labels "," labels)
  set_property(GLOBAL APPEND PROPERTY entries "${name}:${labels}")
endfunction()
include("${script}")

get_property(made GLOBAL PROPERTY entries)
set(expected
  sample.Plain:fast
  sample.Plain.slow:slow
  sample.Ops/Forward.1of3:fast
  sample.Ops/Forward.2of3:fast
  sample.Ops/Forward.3of3:fast
  sample.Random/Fuzz.1of3:fast
  sample.Random/Fuzz.2of3:fast
  sample.Random/Fuzz.3of3:fast,repeated
  sample.Random/GpuFuzz:gpu)
if(NOT made STREQUAL expected)
  string(REPLACE ";" "\n  " made "${made}")
  message(FATAL_ERROR "the entries are\n  ${made}")
endif()
