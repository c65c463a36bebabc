#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clinux_tracking.h"

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

int clinux_track_negotiate(int fd) {
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC};
  return ioctl(fd, UFFDIO_API, &api) < 0 ? -errno : 0;
}

int clinux_track_register(int fd, uint64_t start, uint64_t length) {
  struct uffdio_register argument = {
      .range = {.start = start, .len = length}, .mode = UFFDIO_REGISTER_MODE_WP};
  return ioctl(fd, UFFDIO_REGISTER, &argument) < 0 ? -errno : 0;
}

// This is struct pm_scan_arg, and its two flags.
struct scan_argument {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
enum { SCAN_PROTECTS = 1, SCAN_CHECKS_TRACKING = 2 };

int clinux_track_scan(int pagemap, uint64_t start, uint64_t end, struct clinux_page_region *regions,
                      int capacity, int protect, uint64_t *walk_end) {
  uint64_t foreign = CLINUX_PAGE_IS_FILE | CLINUX_PAGE_IS_PFNZERO;
  struct scan_argument argument = {
      .size = sizeof argument,
      .flags = SCAN_CHECKS_TRACKING | (protect ? SCAN_PROTECTS : 0),
      .start = start,
      .end = end,
      .vec = (uint64_t)(uintptr_t)regions,
      .vec_len = (uint64_t)capacity,
      .category_inverted = foreign,
      .category_mask = CLINUX_PAGE_IS_PRESENT | foreign,
      .return_mask = CLINUX_PAGE_IS_PRESENT | CLINUX_PAGE_IS_WRITTEN,
  };
  int found = ioctl(pagemap, _IOWR('f', 16, struct scan_argument), &argument);
  if (found < 0) return -errno;
  *walk_end = argument.walk_end;
  return found;
}

int clinux_track_open(void) {
  int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | CLINUX_UFFD_USER_MODE_ONLY);
  return fd < 0 ? -errno : fd;
}

static int is_written(int pagemap, char *page, uint64_t size, int protect) {
  uint64_t start = (uint64_t)(uintptr_t)page, end;
  struct clinux_page_region region = {0};
  int result = clinux_track_scan(pagemap, start, start + size, &region, 1, protect, &end);
  if (result < 0) return result;
  return result == 1 ? (region.categories & CLINUX_PAGE_IS_WRITTEN) != 0 : -EIO;
}

static int try_on(int fd, int pagemap, char *page, uint64_t size) {
  int result = clinux_track_negotiate(fd);
  if (result < 0) return result;
  result = clinux_track_register(fd, (uint64_t)(uintptr_t)page, size);
  if (result < 0) return result;
  page[0] = 1;
  result = is_written(pagemap, page, size, 1);
  if (result < 0) return result;
  result = is_written(pagemap, page, size, 0);
  if (result) return result < 0 ? result : -EIO;
  page[0] = 2;
  result = is_written(pagemap, page, size, 1);
  return result < 0 ? result : result ? 1 : -EIO;
}

// Whether a page that was unwritten counts as written once another userfaultfd tracks it, or the
// same one elsewhere. On Linux from 6.7 on it didn't after close(2), which 6.9 corrects, and after
// mremap(2), which 6.13 corrects: memory that was moved to a place of other memory would count as
// that memory, unwritten.
static int forgets(int fd, int pagemap, char *page, uint64_t size) {
  int result = clinux_track_register(fd, (uint64_t)(uintptr_t)page, size);
  if (result < 0) return result;
  result = is_written(pagemap, page, size, 1);
  return result < 0 ? result : result ? 1 : -EIO;
}

// The old place stays mapped until the caller unmaps it: another thread's mapping could come there,
// and be unmapped with the caller's.
int clinux_move_mapping(void *from, uint64_t length, void *to) {
  enum { DONTUNMAP = 4 };
  void *got = mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED | DONTUNMAP, to);
  return got == to ? 0 : -errno;
}

static int try_closed(int pagemap, char *page, uint64_t size) {
  int fd = clinux_track_open();
  if (fd < 0) return fd;
  int result = clinux_track_negotiate(fd);
  if (result >= 0) result = forgets(fd, pagemap, page, size);
  close(fd);
  return result;
}

int clinux_try_tracking(void) {
  uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
  int fd = clinux_track_open();
  if (fd < 0) return fd;
  int result = -ENOMEM;
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t mapped = 2 * size;
  if (pagemap >= 0 && pages != MAP_FAILED) {
    result = try_on(fd, pagemap, pages, size);
    if (result == 1) {
      result = clinux_move_mapping(pages, size, pages + size);
      // With RLIMIT_AS it can fail after it has unmapped the second page. Another thread's mapping
      // may be there by now.
      if (result < 0) mapped = size;
      else result = forgets(fd, pagemap, pages + size, size);
    }
  }
  close(fd);
  if (result == 1) result = try_closed(pagemap, pages + size, size);
  if (pages != MAP_FAILED) munmap(pages, mapped);
  if (pagemap >= 0) close(pagemap);
  return result;
}
