#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/falloc.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __APPLE__
#include <libproc.h>
#include <malloc/malloc.h>
#endif

#include "CWorkerKit.h"

// glibc raises two thresholds by itself the first time that a large block is freed. Each thread's
// heap keeps up to the second one (twice that block) of freed memory at its upper end, and
// malloc_trim trims that end only in the first heap. A worker that had decoded a few pictures would
// keep megabytes at each warning. Setting one of the thresholds, even to its initial value, keeps
// both from rising. Values from the environment are left as they are.
void workerkit_keep_heap_small(void) {
#if defined(__GLIBC__)
  if (getenv("MALLOC_TRIM_THRESHOLD_") || getenv("MALLOC_MMAP_THRESHOLD_") ||
      getenv("GLIBC_TUNABLES"))
    return;
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  mallopt(M_TRIM_THRESHOLD, 128 * 1024);
#endif
}

void workerkit_trim(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#elif defined(__APPLE__)
  malloc_zone_pressure_relief(NULL, 0);
#endif
}

int64_t workerkit_page_size(void) { return sysconf(_SC_PAGESIZE); }

int workerkit_memory_file(int64_t size) {
#ifdef __linux__
  // Making a file larger than the limit doesn't fail, but ends the process by SIGXFSZ.
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < (rlim_t)size)
    return -EFBIG;
  int fd = memfd_create("purgeable", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -errno;
  if (ftruncate(fd, size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
    int code = errno;
    close(fd);
    return -code;
  }
  return fd;
#else
  (void)size;
  return -ENOTSUP;
#endif
}

void *workerkit_map(int file, int64_t length, int *error) {
  int flags = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANON;
#ifdef MAP_NORESERVE
  flags |= MAP_NORESERVE;
#endif
  void *address = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, flags, file, 0);
  *error = address == MAP_FAILED ? -errno : 0;
  if (address == MAP_FAILED) return NULL;
#ifdef MADV_DONTFORK
  // A child that inherited the mapping would allocate the same memory again.
  madvise(address, (size_t)length, MADV_DONTFORK);
#endif
  return address;
}

void workerkit_unmap(void *address, int64_t length) { munmap(address, (size_t)length); }

int workerkit_punch(int file, void *mapping, int64_t offset, int64_t length) {
#ifdef __linux__
  if (file >= 0) {
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    int result;
    do result = fallocate(file, mode, offset, length);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : 0;
  }
  return madvise((char *)mapping + offset, (size_t)length, MADV_DONTNEED) < 0 ? -errno : 0;
#else
  // MADV_DONTNEED doesn't promise zeros on this system. Fresh pages do.
  (void)file;
  void *place = (char *)mapping + offset;
  int flags = MAP_PRIVATE | MAP_ANON | MAP_FIXED;
  void *mapped = mmap(place, (size_t)length, PROT_READ | PROT_WRITE, flags, -1, 0);
  return mapped == MAP_FAILED ? -errno : 0;
#endif
}

int64_t workerkit_physical_footprint(void) {
#ifdef __APPLE__
  struct rusage_info_v4 usage;
  if (proc_pid_rusage(getpid(), RUSAGE_INFO_V4, (rusage_info_t *)&usage) < 0) return -errno;
  return (int64_t)usage.ri_phys_footprint;
#else
  return -ENOTSUP;
#endif
}
