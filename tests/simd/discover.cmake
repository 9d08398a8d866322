# Run by ctest: adds the entries for each vector target.
execute_process(COMMAND "${list_targets}" OUTPUT_VARIABLE targets RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0)
  add_test("simd.NOT_BUILT" "${list_targets}.NOT_BUILT")
  set_tests_properties("simd.NOT_BUILT" PROPERTIES LABELS fast)
  return()
endif()
string(REGEX MATCHALL "[^\n]+" targets "${targets}")
list(POP_FRONT targets best)
# Uses the tile unit for all matmuls; by default it gets only large ones.
if(best STREQUAL "AMX")
  list(APPEND targets "AMX-ALL")
endif()

function(add_entry label name)
  add_test("simd.${target}.${name}" ${ARGN})
  set_tests_properties("simd.${target}.${name}" PROPERTIES
    LABELS "${label};repeated" TIMEOUT 900 ENVIRONMENT "TENSORGRAD_SIMD=${target}"
    FAIL_REGULAR_EXPRESSION "Running 0 tests")
endfunction()

# Suites that do not run on the CPU, and the longest suites of ops.
set(elsewhere "*Gpu*:*Web*")
set(longest "Ops/Switches.*:Ops/Text.*:Coverage.*")
foreach(target IN LISTS targets)
  # Most processors have AVX2; the longer tests of the other targets run before a release.
  set(longer release)
  if(target STREQUAL "AVX2")
    set(longer slow)
  endif()
  add_entry(fast ops "${programs}ops" "--gtest_filter=-${elsewhere}:*Slow*:${longest}")
  add_entry(fast fuzz "${programs}fuzz" --programs 200 --seed 10000)
  if(tg)
    add_entry(fast fixtures "${tg}" verify "${fixtures}" --device cpu --threads 2)
  endif()
  add_entry(${longer} ops_switches "${programs}ops" "--gtest_filter=Ops/Switches.*:*Slow*-${elsewhere}")
  add_entry(${longer} fuzz_more "${programs}fuzz" --programs 3000 --seed 20000)
  foreach(folder compile nn optim train)
    add_entry(${longer} ${folder} "${programs}${folder}" "--gtest_filter=-${elsewhere}")
  endforeach()
endforeach()
