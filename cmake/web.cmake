# What a WebAssembly build has instead of packages. The libraries that tensorgrad includes are headers,
# which the packages of the machine have. Their folders are linked one by one, because /usr/include as
# a whole has the headers of another C library.

set(web_headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${web_headers}")
# web_package(TARGET HEADER PACKAGE): the folder of the machine's HEADER as an imported target.
function(web_package target header package)
  find_path(place "${header}" PATHS /usr/include /usr/local/include
            NO_CACHE NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  if(NOT place)
    message(FATAL_ERROR "${header} was not found\n  hint: sudo apt-get install ${package}")
  endif()
  cmake_path(GET header PARENT_PATH folder)
  file(CREATE_LINK "${place}/${folder}" "${web_headers}/${folder}" SYMBOLIC)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE "${web_headers}")
endfunction()

web_package(fmt::fmt fmt/format.h libfmt-dev)
# Locales, which nothing here uses, would be 50 KB of the download.
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY FMT_STATIC_THOUSANDS_SEPARATOR=44
  FMT_USE_INT128=0 FMT_USE_LONG_DOUBLE=0)
web_package(hwy::hwy hwy/highway.h libhwy-dev)
web_package(nlohmann_json::nlohmann_json nlohmann/json.hpp nlohmann-json3-dev)

# Exceptions are WebAssembly's own; SIMD128 is in every browser that has them. The names of types, which
# -fno-rtti leaves out, would be a tenth of the download.
add_compile_options(-fwasm-exceptions -msimd128 -fno-rtti)
# Internal errors name source files: relative to the checkout, whose path is private.
add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
add_link_options(-fwasm-exceptions)

# --- programs -------------------------------------------------------------------------------------

# Emscripten's optimiser of JavaScript needs npm's acorn.
set(CMAKE_CXX_LINKER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "NODE_PATH=${PROJECT_SOURCE_DIR}/web/node_modules:/usr/share/nodejs")

# Memory grows, and exhausted memory is std::bad_alloc. JavaScript sees int64_t as BigInt.
set(web_browser_js "${PROJECT_SOURCE_DIR}/src/runtime/webgpu/browser.js")
set(web_program_options
  -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sABORTING_MALLOC=0 -sTOTAL_STACK=1MB -sWASM_BIGINT
  "SHELL:--js-library \"${web_browser_js}\"")

# tensorgrad_web_module(TARGET [HEADER...]): makes an executable without main() a JavaScript module,
# TARGET.mjs beside TARGET.wasm, whose create() makes an instance. It exports the C functions that the
# headers declare, and those marked EMSCRIPTEN_KEEPALIVE. It has no files.
function(tensorgrad_web_module target)
  set(exports _malloc _free)
  foreach(header IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
    file(STRINGS "${header}" lines REGEX "^[a-z].*[ *]tg_[a-z_]+[(]")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "tg_[a-z_]+[(]" name "${line}")
      string(REPLACE "(" "" name "${name}")
      if(name) # the pieces after a semicolon have none
        list(APPEND exports "_${name}")
      endif()
    endforeach()
  endforeach()
  list(JOIN exports "\",\"" exports)
  set(exports_file "${CMAKE_CURRENT_BINARY_DIR}/${target}.exports")
  file(CONFIGURE OUTPUT "${exports_file}" CONTENT "[\"${exports}\"]\n" @ONLY)
  set(pre_js "${PROJECT_SOURCE_DIR}/cmake/web_instance.js")
  set_target_properties(${target} PROPERTIES SUFFIX .mjs)
  target_link_options(${target} PRIVATE ${web_program_options}
    -Oz --no-entry -sMODULARIZE -sEXPORT_ES6 -sEXPORT_NAME=create -sENVIRONMENT=web,worker -sFILESYSTEM=0
    "SHELL:--pre-js \"${pre_js}\"" -sEXPORTED_FUNCTIONS=@${exports_file}
    -sEXPORTED_RUNTIME_METHODS=UTF8ToString)
  set_property(TARGET ${target} APPEND PROPERTY
    LINK_DEPENDS "${web_browser_js}" "${pre_js}" "${exports_file}")
endfunction()

# tensorgrad_web_binaries(): the target `web`, which makes what the npm package contains, in dist-wasm/:
# everything and the core without text models, each for the CPU and for GPUs, and everything for several
# threads of the CPU.
function(tensorgrad_web_binaries)
  set(include "${PROJECT_SOURCE_DIR}/include/tensorgrad")
  # The tests link `tensorgrad`; optimising it as a whole would take a minute for each of them.
  tensorgrad_library(tensorgrad_page)
  target_compile_options(tensorgrad_page PRIVATE -flto)
  tensorgrad_library(tensorgrad_threads)
  target_compile_options(tensorgrad_threads PRIVATE -pthread)
  add_custom_target(web)
  set(core "${include}/c.h")
  set(everything ${core} "${include}/c_text.h")
  foreach(backend cpu webgpu)
    tensorgrad_web_binary(tensorgrad-${backend} ${backend} tensorgrad_page ${everything})
    tensorgrad_web_binary(tensorgrad-core-${backend} ${backend} tensorgrad_page ${core})
  endforeach()
  tensorgrad_web_binary(tensorgrad-threads cpu tensorgrad_threads ${everything})
  # The page says how many threads there are; their workers start with the instance.
  target_compile_options(web-tensorgrad-threads PRIVATE -pthread)
  target_link_options(web-tensorgrad-threads PRIVATE
    -pthread "-sPTHREAD_POOL_SIZE=Module['threads']-1" -Wno-pthreads-mem-growth)
endfunction()

# tensorgrad_web_binary(NAME BACKEND LIBRARY HEADER...): one of them, by the target web-NAME. The backend's
# file comes before the library, whose own backends() names all: the rest is not linked.
function(tensorgrad_web_binary name backend library)
  set(target web-${name})
  add_executable(${target} "${PROJECT_SOURCE_DIR}/web/backends/${backend}.cpp")
  add_dependencies(web ${target})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/dist-wasm")
  tensorgrad_own_target(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(${target} PRIVATE -Oz)
  target_link_libraries(${target} PRIVATE ${library})
  tensorgrad_web_module(${target} ${ARGN})
  if(library STREQUAL "tensorgrad_threads")
    return()
  endif()
  # What its script need not look for in the options of create().
  target_link_options(${target} PRIVATE -sINCOMING_MODULE_JS_API=instantiateWasm)
  # A second pass of the optimiser, once all functions are known, saves another hundredth.
  find_program(TENSORGRAD_WASM_OPT wasm-opt REQUIRED)
  set(features simd exception-handling bulk-memory mutable-globals sign-ext nontrapping-float-to-int)
  list(TRANSFORM features PREPEND --enable-)
  set(wasm "$<TARGET_FILE_DIR:${target}>/$<TARGET_FILE_BASE_NAME:${target}>.wasm")
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND "${TENSORGRAD_WASM_OPT}" ${features} -Oz --low-memory-unused "${wasm}" -o "${wasm}")
endfunction()
