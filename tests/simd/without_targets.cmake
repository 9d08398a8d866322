# Checks that the targets a user leaves out are added to those that each processor must leave out.
include("${source_dir}/cmake/vector_targets.cmake")

function(expect processor more expected)
  tensorgrad_without_targets(made "${processor}" "${more}")
  if(NOT made STREQUAL expected)
    message(FATAL_ERROR "${processor} without '${more}': '${made}', not '${expected}'")
  endif()
endfunction()

set(run_time_lengths "HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV")
expect(x86_64 "" "HWY_SSSE3")
expect(x86_64 "HWY_SSE4|HWY_AVX3" "HWY_SSSE3|HWY_SSE4|HWY_AVX3")
expect(aarch64 "" "${run_time_lengths}")
expect(aarch64 "HWY_NEON" "${run_time_lengths}|HWY_NEON")
