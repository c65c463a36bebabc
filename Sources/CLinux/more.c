#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clinux_more.h"

int clinux_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

int clinux_page_out(int pidfd, const struct clinux_range *range) {
  struct iovec area = {(void *)(uintptr_t)range->address, (size_t)range->length};
  long result = syscall(440 /* process_madvise */, pidfd, &area, 1, 21 /* MADV_PAGEOUT */, 0);
  return result < 0 ? -errno : 0;
}

int64_t clinux_file_system_type(const char *path) {
  struct statfs status;
  return statfs(path, &status) < 0 ? -errno : (int64_t)status.f_type;
}
