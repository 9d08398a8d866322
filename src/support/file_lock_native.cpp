#include <sys/file.h>

#include <cerrno>

#include "support/file_lock.h"

namespace tensorgrad {

FileLock lock_file(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return FileLock::ours;
  return errno == EWOULDBLOCK ? FileLock::taken : FileLock::not_supported;
}

}  // namespace tensorgrad
