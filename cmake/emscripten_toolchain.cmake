# The toolchain of the preset `web`: the em++ of the PATH, with its own toolchain file.
find_program(emscripten_config em-config)
if(NOT emscripten_config)
  message(FATAL_ERROR "em-config was not found\n  hint: sudo apt-get install emscripten")
endif()
if(NOT EMSCRIPTEN_ROOT_PATH)
  execute_process(COMMAND "${emscripten_config}" EMSCRIPTEN_ROOT
    OUTPUT_VARIABLE emscripten_root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(EMSCRIPTEN_ROOT_PATH "${emscripten_root}")
endif()
include("${EMSCRIPTEN_ROOT_PATH}/cmake/Modules/Platform/Emscripten.cmake")
