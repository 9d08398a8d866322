#include "support/fail.h"
#include "support/wait.h"

namespace tensorgrad {

void wait_until(Pollable& source, const std::function<bool()>& done, std::string_view what) {
  if (!done()) source.poll(std::chrono::nanoseconds(0));
  if (done()) return;
  user_error("{} is not finished, and this program cannot wait\n  hint: ready() and then()", what);
}

}  // namespace tensorgrad
