#include <emscripten.h>

#include "runtime/cpu/cores.h"

namespace tensorgrad::cpu {

#if defined(__EMSCRIPTEN_PTHREADS__)
// The page started the workers of this many threads with the instance (cmake/web.cmake).
EM_JS(int, threads_of_page, (), { return Module['threads']; });
#else
static int threads_of_page() { return 1; }
#endif

int usable_cores() { return threads_of_page(); }
int most_threads() { return threads_of_page(); }

}  // namespace tensorgrad::cpu
