#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clinux_memory.h"
#include "clinux_threads.h"

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

_Static_assert(sizeof(struct clinux_range) == sizeof(struct iovec), "ranges are iovecs");

static int64_t total(const struct clinux_range *ranges, int count) {
  int64_t sum = 0;
  for (int i = 0; i < count; i++) sum += (int64_t)ranges[i].length;
  return sum;
}

int64_t clinux_vm_read(pid_t pid, void *buffer, const struct clinux_range *ranges, int count) {
  struct iovec local = {buffer, (size_t)total(ranges, count)};
  ssize_t moved = process_vm_readv(pid, &local, 1, (const struct iovec *)ranges, count, 0);
  return moved < 0 ? -errno : moved;
}

struct scan_argument {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

int clinux_pagemap_scan(int pagemap, uint64_t start, uint64_t end,
                        struct clinux_page_region *regions, int capacity, uint64_t required,
                        uint64_t excluded, uint64_t any_of, uint64_t *walk_end) {
  struct scan_argument argument = {
      .size = sizeof argument,
      .start = start,
      .end = end,
      .vec = (uint64_t)(uintptr_t)regions,
      .vec_len = (uint64_t)capacity,
      .category_inverted = excluded,
      .category_mask = required | excluded,
      .category_anyof_mask = any_of,
      .return_mask = required | any_of,
  };
  int found = ioctl(pagemap, _IOWR('f', 16, struct scan_argument), &argument);
  if (found < 0) return -errno;
  *walk_end = argument.walk_end;
  return found;
}

int64_t clinux_syscall_number(int which) {
  switch (which) {
    case CLINUX_SYS_mmap: return SYS_mmap;
    case CLINUX_SYS_munmap: return SYS_munmap;
    case CLINUX_SYS_madvise: return SYS_madvise;
    case CLINUX_SYS_process_madvise: return SYS_process_madvise;
    case CLINUX_SYS_getpid: return SYS_getpid;
    case CLINUX_SYS_futex: return SYS_futex;
    case CLINUX_SYS_prctl: return SYS_prctl;
  }
  return -ENOSYS;
}

int clinux_try_process_madvise_self(void) {
  long size = sysconf(_SC_PAGESIZE);
  char *page = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return -errno;
  page[0] = 1;
  struct iovec range = {page, (size_t)size};
  long done = syscall(SYS_process_madvise, -10000 /* PIDFD_SELF */, &range, 1, MADV_DONTNEED, 0);
  int result = done < 0 ? -errno : (done == size && page[0] == 0 ? 1 : -EIO);
  munmap(page, (size_t)size);
  return result;
}

int clinux_page_out(int pidfd, const struct clinux_range *range) {
  struct iovec area = {(void *)(uintptr_t)range->address, (size_t)range->length};
  long result = syscall(SYS_process_madvise, pidfd, &area, 1, 21 /* MADV_PAGEOUT */, 0);
  return result < 0 ? -errno : 0;
}

int clinux_share_memory(pid_t one, pid_t other) {
  long order = syscall(SYS_kcmp, one, other, 1 /* KCMP_VM */, 0, 0);
  return order < 0 ? -errno : order == 0;
}

int clinux_memory_can_have_tags(void) {
#ifdef __aarch64__
  return getauxval(AT_HWCAP2) >> 18 & 1;  // HWCAP2_MTE
#else
  return 0;
#endif
}

void clinux_trim_heap(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
