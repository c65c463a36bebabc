#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clinux_files.h"

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

int clinux_exchange(const char *one, const char *other) {
  long result = syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u /* RENAME_EXCHANGE */);
  return result < 0 ? -errno : 0;
}
