#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stddef.h>
#include <sys/mman.h>
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

int clinux_cut_beginning(int fd, int64_t length) {
  return fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, length) < 0 ? -errno : 0;
}

int clinux_memory_file(const char *name) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  return fd < 0 ? -errno : fd;
}
