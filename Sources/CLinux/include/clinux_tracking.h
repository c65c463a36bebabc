#ifndef CLINUX_TRACKING_H
#define CLINUX_TRACKING_H
#include <stdint.h>

#include "clinux_memory.h"

// Which pages a process has written: userfaultfd's asynchronous write protection (Linux 6.7). The
// kernel itself removes a protected page's mark when the page is written. No thread waits, no message is
// sent, and any kind of private mapping can be registered. Spelled out here because Debian 12's
// headers are older.

enum { CLINUX_PAGE_IS_WRITTEN = 1 << 1 };

// UFFD_USER_MODE_ONLY: what an ordinary user's process may open. With asynchronous protection the
// kernel's own writes are tracked as well.
enum { CLINUX_UFFD_USER_MODE_ONLY = 1 };

// A userfaultfd of this process, for tracking.
int clinux_track_open(void);
// Asks for asynchronous write protection, once for each descriptor; -EINVAL where there is none.
int clinux_track_negotiate(int fd);
// Writes to the range can be watched from now on. -EBUSY: another userfaultfd has it; -ENOMEM: the process
// doesn't have that memory any more (it has ended, or called exec).
int clinux_track_register(int fd, uint64_t start, uint64_t length);
// Present private pages of the range, with CLINUX_PAGE_IS_WRITTEN where they aren't protected. -EPERM
// where a mapping of the range isn't registered. With `protect`, those that are found are protected.
int clinux_track_scan(int pagemap, uint64_t start, uint64_t end, struct clinux_page_region *regions,
                      int capacity, int protect, uint64_t *walk_end);
// Tries all that on a page of this process: 1 if the kernel supports it, else -errno.
int clinux_try_tracking(void);
// mremap(2) of this process's memory to another address (variadic).
int clinux_move_mapping(void *from, uint64_t length, void *to);
#endif
