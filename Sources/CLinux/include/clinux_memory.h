#ifndef CLINUX_MEMORY_H
#define CLINUX_MEMORY_H
#include <stdint.h>
#include <sys/types.h>

// One range of another process's memory.
struct clinux_range {
  uint64_t address;
  uint64_t length;
};

// Calls process_vm_readv(2): the ranges of the other process are copied into one buffer. There may
// be at most 1024 ranges. Returns the number of bytes copied (less if a range can't be read), or
// -errno.
int64_t clinux_vm_read(pid_t pid, void *buffer, const struct clinux_range *ranges, int count);

// PAGEMAP_SCAN (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst). It is declared here because
// the headers of Debian 12 are older than the call.
struct clinux_page_region {
  uint64_t start;
  uint64_t end;
  uint64_t categories;
};
enum {
  // A userfaultfd records the writes to the mapping (asynchronous write protection).
  CLINUX_PAGE_IS_WPALLOWED = 1 << 0,
  CLINUX_PAGE_IS_FILE = 1 << 2,
  CLINUX_PAGE_IS_PRESENT = 1 << 3,
  CLINUX_PAGE_IS_SWAPPED = 1 << 4,
  CLINUX_PAGE_IS_PFNZERO = 1 << 5,
};
// Finds pages with all categories of `required`, at least one of `any_of` (0: any page), and none
// of `excluded`. Returns the number of regions stored; *walk_end is the address at which the walk
// ended.
int clinux_pagemap_scan(int pagemap, uint64_t start, uint64_t end,
                        struct clinux_page_region *regions, int capacity, uint64_t required,
                        uint64_t excluded, uint64_t any_of, uint64_t *walk_end);

enum { CLINUX_SYS_mmap, CLINUX_SYS_munmap, CLINUX_SYS_madvise, CLINUX_SYS_process_madvise,
       CLINUX_SYS_getpid, CLINUX_SYS_futex, CLINUX_SYS_prctl };
enum { CLINUX_PR_SET_PTRACER = 0x59616d61 };  // prctl(2)
// Returns the number of a system call on this architecture.
int64_t clinux_syscall_number(int which);
// Calls process_madvise(PIDFD_SELF, ranges, 1, MADV_DONTNEED) on a page of this process. Returns 1
// if the kernel supports it, otherwise -errno.
int clinux_try_process_madvise_self(void);
// Returns 1 if a thread that doesn't trace a process can write, through /proc/PID/mem, pages that
// the process may only read (proc_mem.force_override=always). Otherwise it returns -errno. It tries
// that on a page of this process.
int clinux_writes_read_only_pages(void);
// Tries what the calling thread may do to a child that it traces. *writes: 1 if it can write such
// pages, otherwise -errno (-EIO with proc_mem.force_override=never). *shows_rseq: 1 if the kernel
// shows the child's area for restartable sequences, otherwise -errno. Returns 0, or -errno if it
// couldn't be tried: then this process may trace no child.
int clinux_try_as_tracer(int *writes, int *shows_rseq);
// Returns 1 if a process continues whose area for restartable sequences (rseq(2)) has old content,
// as that of a restored process has. Returns 0 if the kernel ends it; -errno if it couldn't be
// tried. It tries that on a child, for some milliseconds.
int clinux_rseq_survives_restore(void);
// Calls process_madvise(2) with MADV_PAGEOUT: the kernel moves pages of another process's range to
// swap, as far as it permits.
int clinux_page_out(int pidfd, const struct clinux_range *range);
// Returns 1 if both processes run in one address space (kcmp(2)), 0 if they don't, -errno if the
// kernel can't compare them.
int clinux_share_memory(pid_t one, pid_t other);
// Returns 1 if memory can have tags on this machine (arm64's MTE).
int clinux_memory_can_have_tags(void);
// Returns this process's freed memory to the kernel (malloc_trim(3)). Without glibc it does
// nothing.
void clinux_trim_heap(void);
#endif
