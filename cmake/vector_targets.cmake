# tensorgrad_without_targets(RESULT PROCESSOR MORE): the vector targets of Highway that are not compiled
# for PROCESSOR, as the mask HWY_SSSE3|HWY_AVX3: those that cannot be, and MORE.
function(tensorgrad_without_targets result processor more)
  if(processor MATCHES "^(x86_64|AMD64|i.86)$")
    # SSSE3 without SSE4 ended with the processors of 2007.
    set(targets HWY_SSSE3)
  else()
    # Vectors whose length is known only at run time cannot be members or array elements, which attention
    # and the scan need; NEON, of fixed length, serves there.
    set(targets HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128 HWY_RVV)
  endif()
  list(APPEND targets ${more})
  list(JOIN targets "|" targets)
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()
