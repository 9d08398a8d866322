# Run by ctest: turns the GoogleTest program `program` of tests/`folder` into ctest entries.
#
# One entry per suite and label rather than per test: a process that opens a device or reads the
# fixtures does so once for all its tests. Long suites are split into shards that run in parallel.
#
# `except`: a filter of tests that are left out.
#
# `web`: the program is WebAssembly. Its tests have the label web, but for those that are slow natively,
# which run before a release.
set(shard_size 100)
set(gpu_shard_size 10) # a software driver takes seconds for some: no entry takes a minute
# Random/... suites have seeds instead of cases: more shards are only more of the same.
set(random_shards 2)
# Suites with the label repeated: they run what other suites run, with passes left out, with other
# numbers of threads or vector targets, or many times. They take long with sanitizers.
set(repeating "^(cpu[.]By/MatmulOfManySizes|ops[.]Ops/(Switches|Bits|Guards)|tool[.](ToolText|ToolTrain|Without)|train[.](Readme|Fixtures/WrongNumber)|fuzz[.]Check)$")

# The kind that a name gives: Prefix/SlowGpuName is Slow. The label of a kind is its lower-case form.
function(kind_of name result)
  if(name MATCHES "(^|/)(Release|Slow|Gpu|Web)")
    set(${result} ${CMAKE_MATCH_2} PARENT_SCOPE)
  else()
    set(${result} Fast PARENT_SCOPE)
  endif()
endfunction()

# Adds the `count` tests of this kind that the suite has; `others` are the other kinds in it.
function(add_suite suite kind count others)
  string(TOLOWER "${kind}" label)
  set(name "${folder}.${suite}")
  set(filter "${suite}.*")
  kind_of("${suite}" kind_of_suite)
  if(NOT kind STREQUAL kind_of_suite)  # single tests of the suite have a kind of their own
    string(APPEND name ".${label}")
    set(filter "${suite}.${kind}*:${suite}.*/${kind}*")
  elseif(others)
    list(TRANSFORM others REPLACE "(.+)" "${suite}.\\1*:${suite}.*/\\1*")
    list(JOIN others ":" others)
    set(filter "${suite}.*-${others}")
  endif()
  if(folder MATCHES "^[Ss]low")
    set(label slow)
  endif()
  if(web)
    if(label MATCHES "^(slow|release)$")
      set(label release)
    else()
      set(label web)
    endif()
  endif()

  if(except AND filter MATCHES "-")
    string(APPEND filter ":${except}")
  elseif(except)
    string(APPEND filter "-${except}")
  endif()

  set(size ${shard_size})
  if(suite MATCHES "(^|/)(Release|Slow)?Gpu")
    set(size ${gpu_shard_size})
  endif()
  math(EXPR shards "(${count} + ${size} - 1) / ${size}")
  foreach(shard RANGE 1 ${shards})
    set(entry "${name}")
    set(labels ${label})
    if(name MATCHES "${repeating}" OR (suite MATCHES "^Random/" AND shard GREATER random_shards))
      list(APPEND labels repeated)
    endif()
    set(environment "TENSORGRAD_CACHE=${cache}" ${own_environment})
    if(shards GREATER 1)
      math(EXPR index "${shard} - 1")
      string(APPEND entry ".${shard}of${shards}")
      list(APPEND environment "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    endif()
    add_test("${entry}" ${program} "--gtest_filter=${filter}")
    # What takes long starts first, so that no core is idle at the end.
    set(cost 1)
    if(suite MATCHES "(^|/)Gpu")
      set(cost 10)
    elseif(suite MATCHES "(^|/)Slow")
      set(cost 100)
    endif()
    set_tests_properties("${entry}" PROPERTIES
      LABELS "${labels}" TIMEOUT 900 COST ${cost} ENVIRONMENT "${environment}"
      FAIL_REGULAR_EXPRESSION "Running 0 tests"
      # An entry is skipped if all of its tests were. One failure among them is a failure.
      SKIP_REGULAR_EXPRESSION
      "PASSED  \\] 0 tests[.]\n\\[  SKIPPED \\] [^\n]+ listed below:(\n\\[  SKIPPED \\] [^\n]+)+\n*$")
  endforeach()
endfunction()

# An entry that fails because its program does not exist, which is better than a missing entry.
function(add_failure why)
  add_test("${folder}.${why}" "${folder}.${why}")
  set_tests_properties("${folder}.${why}" PROPERTIES LABELS "fast;web")
endfunction()

set(left_out "")
if(except)
  set(left_out "--gtest_filter=-${except}")
endif()
execute_process(COMMAND ${program} --gtest_list_tests ${left_out}
                OUTPUT_VARIABLE listing RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0)
  add_failure(NOT_BUILT)
  return()
endif()

# The listing has "Suite." at the margin and the names of its tests indented below it.
string(REPLACE ";" "," listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")
set(suites "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ #]+)[.]")
    set(suite "${CMAKE_MATCH_1}")
    kind_of("${suite}" kind_of_suite)
    list(APPEND suites "${suite}")
    set(kinds_${suite} "")
  elseif(line MATCHES "^  ([^ #]+)")
    set(kind ${kind_of_suite})
    if(kind STREQUAL "Fast")
      kind_of("${CMAKE_MATCH_1}" kind)
    endif()
    list(APPEND kinds_${suite} ${kind})
  endif()
endforeach()

foreach(suite IN LISTS suites)
  set(kinds ${kinds_${suite}})
  list(REMOVE_DUPLICATES kinds)
  foreach(kind IN LISTS kinds)
    set(same ${kinds_${suite}})
    list(FILTER same INCLUDE REGEX "^${kind}$")
    list(LENGTH same count)
    set(others ${kinds})
    list(REMOVE_ITEM others ${kind})
    add_suite("${suite}" ${kind} ${count} "${others}")
  endforeach()
endforeach()
if(NOT suites)
  add_failure(CONTAINS_NO_TESTS)
endif()
