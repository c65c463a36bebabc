#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clinux_purgeable.h"

int clinux_shared_file_facts(int fd, struct clinux_shared_file *facts) {
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return -errno;
  struct statfs system;
  if (fstatfs(fd, &system) < 0) return -errno;
  if (system.f_type != TMPFS_MAGIC) return -EINVAL;
  struct stat status;
  if (fstat(fd, &status) < 0) return -errno;
  facts->seals = seals;
  facts->size = status.st_size;
  return 0;
}

int64_t clinux_allocated_bytes(int fd) {
  struct stat status;
  return fstat(fd, &status) < 0 ? -errno : (int64_t)status.st_blocks * 512;
}

int clinux_punch(int fd, int64_t offset, int64_t length) {
  int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  return fallocate(fd, mode, offset, length) < 0 ? -errno : 0;
}

int64_t clinux_map_shared(int fd, int64_t length) {
  void *address = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return -errno;
  munlock(address, (size_t)length);
  return (int64_t)(intptr_t)address;
}

int clinux_unmap(int64_t address, int64_t length) {
  return munmap((void *)(intptr_t)address, (size_t)length) < 0 ? -errno : 0;
}

int clinux_sealed_memory_file(const char *name, int64_t size, int seals) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -errno;
  if (ftruncate(fd, size) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
    int code = errno;
    close(fd);
    return -code;
  }
  return fd;
}
