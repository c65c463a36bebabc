#ifndef CLINUX_TRACKING_H
#define CLINUX_TRACKING_H
#include <stdint.h>

#include "clinux_memory.h"

// Tracks which pages a process has written: userfaultfd's asynchronous write protection (Linux
// 6.7). The kernel itself removes a protected page's mark when the page is written. No thread
// waits, no message is sent, and any kind of private mapping can be registered. It is declared here
// because the headers of Debian 12 are older.

enum { CLINUX_PAGE_IS_WRITTEN = 1 << 1 };

// The kind of userfaultfd that an ordinary user's process may open (UFFD_USER_MODE_ONLY). With
// asynchronous protection the kernel's own writes are tracked as well.
enum { CLINUX_UFFD_USER_MODE_ONLY = 1 };

// Opens a userfaultfd of this process, for tracking.
int clinux_track_open(void);
// Requests asynchronous write protection, once for each descriptor. Returns -EINVAL if the kernel
// doesn't have it.
int clinux_track_negotiate(int fd);
// Registers a range, so that writes to it can be tracked from now on. Returns -EBUSY if another
// userfaultfd has registered it; -ENOMEM if the process doesn't have that memory any more (it has
// ended, or called exec).
int clinux_track_register(int fd, uint64_t start, uint64_t length);
// Finds the present private pages of the range, with CLINUX_PAGE_IS_WRITTEN if they aren't
// protected. Returns -EPERM if a mapping of the range isn't registered. With `protect`, the pages
// that are found are protected.
int clinux_track_scan(int pagemap, uint64_t start, uint64_t end, struct clinux_page_region *regions,
                      int capacity, int protect, uint64_t *walk_end);
// Tries all of this on a page of this process. Returns 1 if the kernel supports it, otherwise
// -errno.
int clinux_try_tracking(void);
// Moves this process's memory to another address by mremap(2), which is variadic.
int clinux_move_mapping(void *from, uint64_t length, void *to);
#endif
