#ifndef CLINUX_MEMORY_H
#define CLINUX_MEMORY_H
#include <stdint.h>
#include <sys/types.h>

// One range of another process's memory.
struct clinux_range {
  uint64_t address;
  uint64_t length;
};

// process_vm_readv/writev: local contiguous, remote scattered. At most 1024 ranges a call.
// Returns the bytes moved (short when a range can't be reached), or -errno.
int64_t clinux_vm_read(pid_t pid, void *buffer, const struct clinux_range *ranges, int count);

// PAGEMAP_SCAN (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst). Spelled out here because
// Debian 12's headers are older than the call.
struct clinux_page_region {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};
enum {
  // The mapping's writes are recorded by a userfaultfd (asynchronous write protection).
  CLINUX_PAGE_IS_WPALLOWED = 1 << 0,
  CLINUX_PAGE_IS_FILE = 1 << 2,
  CLINUX_PAGE_IS_PRESENT = 1 << 3,
  CLINUX_PAGE_IS_SWAPPED = 1 << 4,
  CLINUX_PAGE_IS_PFNZERO = 1 << 5,
};
// Finds pages with all categories of `required`, at least one of `any_of` (0: no matter), and none of `excluded`. Returns the number of
// regions filled in, and where the walk ended in *walk_end.
int clinux_pagemap_scan(int pagemap, uint64_t start, uint64_t end,
                        struct clinux_page_region *regions, int capacity, uint64_t required,
                        uint64_t excluded, uint64_t any_of, uint64_t *walk_end);

enum { CLINUX_SYS_mmap, CLINUX_SYS_munmap, CLINUX_SYS_madvise, CLINUX_SYS_process_madvise,
       CLINUX_SYS_getpid };
// The number of a system call on this architecture.
int64_t clinux_syscall_number(int which);
// Calls process_madvise(PIDFD_SELF, ranges, 1, MADV_DONTNEED) on a page of this process: 1 if the
// kernel supports it, else -errno.
int clinux_try_process_madvise_self(void);
// 1: a thread that traces no process writes pages through /proc/PID/mem that their process may only read
// (proc_mem.force_override=always); else -errno. Tried on a page of this process.
int clinux_writes_read_only_pages(void);
// What the calling thread may do to a child that it traces. *writes: 1 if it writes such pages, else -errno (-EIO with
// proc_mem.force_override=never). *shows_rseq: 1 if the kernel shows the child's area for restartable sequences, else
// -errno. Returns 0, or -errno if it couldn't be tried: this process may trace no child.
int clinux_try_as_tracer(int *writes, int *shows_rseq);
// 1: a process whose area for restartable sequences (rseq(2)) has old contents runs on, as a restored one must; 0: the
// kernel ends it; -errno: it couldn't be tried. Tried on a child, for some milliseconds.
int clinux_rseq_survives_restore(void);
// 1: both processes run in one address space (kcmp(2)); 0: they don't; -errno: the kernel can't compare them.
int clinux_share_memory(pid_t one, pid_t other);
// Returns this process's freed memory to the kernel (malloc_trim(3); without glibc nothing).
void clinux_trim_own_memory(void);
#endif
