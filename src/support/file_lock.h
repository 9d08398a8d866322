// Locks on open files, by which others know that their writer lives.
#pragma once

namespace tensorgrad {

enum class FileLock { ours, taken, not_supported };

// Held until the file is closed, at the latest when the process ends. Does not wait.
FileLock lock_file(int descriptor);

}  // namespace tensorgrad
