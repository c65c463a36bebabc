// Preloaded (LD_PRELOAD), makes writes at a place in a file fail, as long as the file named in
// FAILING_DISK exists: with the error whose number is FAILING_DISK_ERROR (EIO of a broken disk,
// ENOSPC of a full one). The first 100,000 bytes are written.
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  const char *order = getenv("FAILING_DISK"), *error = getenv("FAILING_DISK_ERROR");
  if (order && error && offset > 100000 && access(order, F_OK) == 0) {
    errno = atoi(error);
    return -1;
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  return pwrite64(file, bytes, count, offset);
}
