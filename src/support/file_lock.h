// Locks on open files. They show other processes that the writer is alive.
#pragma once

namespace tensorgrad {

enum class FileLock { ours, taken, not_supported };

// Locks the file until it is closed, at the latest when the process ends. Does not block.
FileLock lock_file(int descriptor);

}  // namespace tensorgrad
